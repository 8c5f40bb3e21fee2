/** Types that follow from schema literals. */

type Texts = { title?: string; description?: string };

/** A line of text. */
export type StringField = Texts & {
  type: "string";
  minLength?: number;
  maxLength?: number;
  format?: "email" | "uri" | "date" | "date-time";
  default?: string;
};
/** A number. */
export type NumberField = Texts & { type: "number" | "integer"; minimum?: number; maximum?: number; default?: number };
/** Yes or no. */
export type BooleanField = Texts & { type: "boolean"; default?: boolean };
/** One of several. */
export type SelectField = Texts & { type: "string"; default?: string } & (
    | { enum: readonly string[]; enumNames?: readonly string[] }
    | { oneOf: readonly { const: string; title: string }[] }
  );
/** Any of several. */
export type MultiSelectField = Texts & {
  type: "array";
  minItems?: number;
  maxItems?: number;
  default?: readonly string[];
  items: { type: "string"; enum: readonly string[] } | { anyOf: readonly { const: string; title: string }[] };
};
export type Field = StringField | NumberField | BooleanField | SelectField | MultiSelectField;

/** The closed subset of JSON Schema that a form may be made of (R-113…R-123). The engine checks it again. */
export interface FormSchema {
  readonly type: "object";
  readonly properties: { readonly [name: string]: Field };
  readonly required?: readonly string[];
}

/** A form: what is asked, and for which fields. */
export interface Form<S extends FormSchema = FormSchema> {
  readonly message: string;
  readonly schema: S;
}

type FieldValue<F> = F extends { enum: readonly (infer E)[] }
  ? E
  : F extends { oneOf: readonly { const: infer C }[] }
    ? C
    : F extends { type: "string" }
      ? string
      : F extends { type: "number" | "integer" }
        ? number
        : F extends { type: "boolean" }
          ? boolean
          : F extends { items: { enum: readonly (infer E)[] } }
            ? E[]
            : F extends { items: { anyOf: readonly { const: infer C }[] } }
              ? C[]
              : never;

type Required<S> = S extends { required: readonly (infer R)[] } ? R : never;
type Flat<T> = { [K in keyof T]: T[K] };
type Members<S, P, V extends { [K in keyof P]: unknown }> = Flat<
  { -readonly [K in keyof P as K extends Required<S> ? K : never]: V[K] } & {
    -readonly [K in keyof P as K extends Required<S> ? never : K]?: V[K];
  }
>;

/** The content of an accepted form. */
export type Content<S extends FormSchema> = Members<
  S,
  S["properties"],
  { [K in keyof S["properties"]]: FieldValue<S["properties"][K]> }
>;

/** What a person did with a form or a url; the three are different facts. */
export type Elicited<T> = { action: "accept"; content: T } | { action: "decline" } | { action: "cancel" };

/** An optional ask that the client cannot answer (G-13). */
export type Unavailable = { action: "unavailable" };

/** A JSON Schema as far as arguments are checked by it: `type`, `properties`, `required`, `items`, `enum`, `const`. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The type of a value that a schema literal describes. What it says in other ways is `unknown`. */
export type FromSchema<S> = S extends { const: infer C }
  ? C
  : S extends { enum: readonly (infer E)[] }
    ? E
    : S extends { type: "string" }
      ? string
      : S extends { type: "number" | "integer" }
        ? number
        : S extends { type: "boolean" }
          ? boolean
          : S extends { type: "null" }
            ? null
            : S extends { type: "array"; items: infer I }
              ? FromSchema<I>[]
              : S extends { type: "array" }
                ? unknown[]
                : S extends { properties: infer P }
                  ? Members<S, P, { [K in keyof P]: FromSchema<P[K]> }>
                  : S extends { type: "object" }
                    ? Record<string, unknown>
                    : unknown;

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** @internal Whether the keywords by which arguments are checked are what they should be, all the way down. */
export function sound(schema: unknown): boolean {
  if (typeof schema === "boolean") return true;
  if (!isObject(schema)) return false;
  const { type = [], required = [], enum: values = [], properties = {}, items = [] } = schema;
  const types = [type].flat() as string[];
  return (
    types.every((one) => TYPES.includes(one)) &&
    [required, values].every(Array.isArray) &&
    isObject(properties) &&
    [...Object.values(properties), items].flat().every(sound)
  );
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @internal The path and fault of the first value that does not fit, or nothing. */
export function misfit(schema: JsonSchema | boolean, value: unknown, path = "arguments"): string | undefined {
  if (schema === false) return `${path} is not allowed`;
  if (typeof schema !== "object" || schema === null) return undefined;
  const kind = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (schema.type !== undefined) {
    const types = Array.isArray(schema.type) ? schema.type : [schema.type];
    const fits = (type: unknown) =>
      type === kind || (kind === "number" && (type === "number" || (type === "integer" && Number.isInteger(value))));
    if (!types.some(fits)) return `${path} is not of type ${types.join(" or ")}`;
  }
  if ("const" in schema && !equal(value, schema.const)) return `${path} is not the constant`;
  if (Array.isArray(schema.enum) && !schema.enum.some((one) => equal(value, one))) return `${path} is none of the values`;
  if (kind === "object") {
    const members = value as Record<string, unknown>;
    for (const name of (schema.required as readonly string[] | undefined) ?? []) {
      if (!Object.hasOwn(members, name)) return `${path}.${name} is missing`;
    }
    for (const [name, inner] of Object.entries((schema.properties as Record<string, JsonSchema> | undefined) ?? {})) {
      if (!Object.hasOwn(members, name)) continue;
      const found = misfit(inner, members[name], `${path}.${name}`);
      if (found !== undefined) return found;
    }
  }
  if (kind === "array" && typeof schema.items === "object" && schema.items !== null) {
    for (const [index, item] of (value as unknown[]).entries()) {
      const found = misfit(schema.items as JsonSchema, item, `${path}[${index}]`);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Whether two values are the same JSON, whatever the order of their members. */
function equal(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const [mine, yours] = [Object.entries(a), Object.entries(b)];
  if (Array.isArray(a) !== Array.isArray(b) || mine.length !== yours.length) return false;
  return mine.every(([name, value]) => Object.hasOwn(b, name) && equal(value, (b as Record<string, unknown>)[name]));
}
