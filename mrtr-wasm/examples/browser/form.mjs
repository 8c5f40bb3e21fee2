// Real HTML fields for a form's schema, with labels, hints and messages that belong to them.

/** Puts fields into `place`; gives what reads them. */
export function fields(place, { properties, required = [] }) {
  place.replaceChildren();
  const readers = Object.entries(properties).map(([name, schema]) => field(place, name, schema, required.includes(name)));
  return {
    /** Whether everything fits; otherwise the first field that does not has the focus, and each says why. */
    check() {
      const wrong = readers.filter((reader) => !reader.check());
      wrong[0]?.focus();
      return wrong.length === 0;
    },
    /** The content, without what was left empty. */
    content() {
      const entries = readers.map(({ name, value }) => [name, value()]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    },
    focus: () => readers[0]?.focus(),
  };
}

let count = 0;

function field(place, name, schema, required) {
  const id = `field-${++count}`;
  const box = element("div");
  const hint = element("p", { id: `${id}-hint`, className: "hint", textContent: schema.description ?? "" });
  const fault = element("p", { id: `${id}-fault`, className: "fault" });
  const label = `${schema.title ?? name}${required ? " (required)" : ""}`;
  const made = { array: several, boolean: check }[schema.type] ?? (options(schema) ? select : line);
  const control = made({ id, label, schema, required, box });
  control.describe(`${hint.id} ${fault.id}`);
  box.append(...(schema.description ? [hint] : []), fault);
  place.append(box);
  const say = (message) => {
    fault.textContent = message;
    control.invalid(message !== "");
  };
  control.changed(() => fault.textContent !== "" && say(control.fault()));
  return {
    name,
    value: control.value,
    focus: control.focus,
    check() {
      const message = control.fault();
      say(message);
      return message === "";
    },
  };
}

function options(schema) {
  return (
    schema.oneOf?.map((one) => [one.const, one.title]) ??
    schema.anyOf?.map((one) => [one.const, one.title]) ??
    schema.enum?.map((value, at) => [value, schema.enumNames?.[at] ?? value])
  );
}

/** One control: what all of them have in common. */
function single(input, value) {
  return {
    value,
    focus: () => input.focus(),
    fault: () => input.validationMessage,
    describe: (ids) => input.setAttribute("aria-describedby", ids),
    invalid: (is) => input.setAttribute("aria-invalid", is),
    changed: (hear) => input.addEventListener("input", hear),
  };
}

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

function line({ id, label, schema, required, box }) {
  const isNumber = schema.type !== "string";
  const input = element("input", { id, required, type: isNumber ? "number" : (TYPES[schema.format] ?? "text") });
  if (schema.minLength !== undefined) input.minLength = schema.minLength;
  if (schema.maxLength !== undefined) input.maxLength = schema.maxLength;
  if (schema.minimum !== undefined) input.min = schema.minimum;
  if (schema.maximum !== undefined) input.max = schema.maximum;
  if (isNumber) input.step = schema.type === "integer" ? 1 : "any";
  if (schema.default !== undefined) input.value = schema.default;
  box.append(element("label", { htmlFor: id, textContent: label }), input);
  return single(input, () => {
    if (input.value === "") return undefined;
    if (isNumber) return input.valueAsNumber;
    return schema.format === "date-time" ? new Date(input.value).toISOString() : input.value;
  });
}

function select({ id, label, schema, required, box }) {
  const input = element("select", { id, required });
  input.append(element("option", { value: "", textContent: required ? "Choose …" : "–" }));
  for (const [value, title] of options(schema)) input.append(element("option", { value, textContent: title }));
  input.value = schema.default ?? "";
  box.append(element("label", { htmlFor: id, textContent: label }), input);
  return single(input, () => (input.value === "" ? undefined : input.value));
}

function check({ id, label, schema, box }) {
  const input = element("input", { id, type: "checkbox", checked: schema.default === true });
  box.className = "check";
  box.append(input, " ", element("label", { htmlFor: id, textContent: label }));
  return single(input, () => input.checked);
}

function several({ id, label, schema, required, box }) {
  const group = element("fieldset", { id });
  group.append(element("legend", { textContent: label }));
  const inputs = options(schema.items).map(([value, title], at) => {
    const input = element("input", { id: `${id}-${at}`, type: "checkbox", value, checked: schema.default?.includes(value) ?? false });
    const row = element("div");
    row.append(input, " ", element("label", { htmlFor: input.id, textContent: title }));
    group.append(row);
    return input;
  });
  box.append(group);
  const chosen = () => inputs.filter(({ checked }) => checked).map(({ value }) => value);
  const least = schema.minItems ?? (required ? 1 : 0);
  const most = schema.maxItems ?? inputs.length;
  return {
    value: () => (required || chosen().length > 0 ? chosen() : undefined),
    focus: () => inputs[0]?.focus(),
    fault: () => (chosen().length < least ? `Choose at least ${least}.` : chosen().length > most ? `Choose at most ${most}.` : ""),
    describe: (ids) => group.setAttribute("aria-describedby", ids),
    invalid: (is) => inputs.forEach((input) => input.setAttribute("aria-invalid", is)),
    changed: (hear) => group.addEventListener("input", hear),
  };
}

function element(name, members = {}) {
  return Object.assign(document.createElement(name), members);
}
