// Preloaded into the conformance suite: what would listen on every address listens on loopback only.
//
// Giving `listen` a host would send it through the resolver, and `server.address()` right after it, which the suite
// uses, would still be null. The place where Node has resolved everything and opens the socket stays synchronous.
const { Server } = require('node:net');

const open = Server.prototype._listen2;
const everywhere = [null, undefined, '', '0.0.0.0', '::'];

Server.prototype._listen2 = function (address, port, family, ...rest) {
  const tcp = typeof port === 'number' && port >= 0;
  if (tcp && everywhere.includes(address)) return open.call(this, '127.0.0.1', port, 4, ...rest);
  return open.call(this, address, port, family, ...rest);
};
