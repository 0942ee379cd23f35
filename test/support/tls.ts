import { readFileSync } from 'node:fs'

const read = (name: string): Buffer => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url))

/** The certificates of test/fixtures/tls: `server` and `client` are signed by `ca`, `otherServer` by `otherCa`. */
export const TLS = {
  ca: read('ca.pem'),
  otherCa: read('other-ca.pem'),
  server: { cert: read('server.pem'), key: read('server.key') },
  otherServer: { cert: read('other-server.pem'), key: read('other-server.key') },
  client: { cert: read('client.pem'), key: read('client.key') },
}
