import { parseArgs } from 'node:util'
import { askAws } from './aws.ts'
import { editorPeer } from './editor.ts'
import { gatewaysPeer } from './gateways.ts'
import { goPeer } from './go.ts'
import { javaPeer } from './java.ts'
import { askProxy } from './keycloak/judge.ts'
import { askLogin, LOGINS, peerRealm } from './keycloak/login.ts'
import { companyRealm } from './keycloak/realm.ts'
import { missingKeycloak, startKeycloak, VERSION } from './keycloak/server.ts'
import { createWorld } from './keycloak/world.ts'
import { askPythonClient } from './login.ts'
import { mcpRemotePeer } from './mcp-remote.ts'
import { askMcpClient } from './mcp.ts'
import { askMoto } from './moto.ts'
import { askOtlpReceiver } from './otlp.ts'
import { botocoreAuthorizations, installPython, missingPyPI, systemPython } from './python.ts'
import { readingsOfPython, readingText } from './readings.ts'
import { chosenOf, runPeers, type Peer } from './peers.ts'
import { shellPeer } from './shells.ts'
import { askTrust } from './trust.ts'
import { openScratch, watchNpm } from '../test/support/scratch.ts'
import { ourAuthorization, s3SigningCases, signingCases } from './vectors-cases.ts'

const HELP = `npm run peers -- [--only TEXTS] [--help]

Runs what others wrote against this repository, as far as it can be had here, and says which of it ran. Exit code 1 when one of
them disagrees, and when one that could be had did not run; 2 when none is chosen. Whichever way it ends, nothing that it has
started is left behind (Linux).

  --only TEXTS    Only peers with one of these, separated by commas, in their name.
`
const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, help: { type: 'boolean' } } })
if (values.help) {
  process.stdout.write(HELP)
  process.exit(0)
}
// No signal is caught: it would wait for the end of whatever is installed.
openScratch('peers')
watchNpm(() => process.exit(1))
const say = (line: string) => process.stdout.write(`peers: ${line}\n`)

const BOTOCORE = 'botocore==1.44.5'
const MCP = 'mcp==2.3.0'
const MINISTACK = 'ministack==1.5.33'
const OTLP = 'opentelemetry-proto==1.45.2'
const PACKAGES = [BOTOCORE, MCP, OTLP, 'moto[iam,s3,sts,server]==5.2.5']

/** Shared prerequisites, resolved on first use. */
function once<T>(find: () => T): () => T {
  let found: { readonly value: T } | undefined
  return () => (found ??= { value: find() }).value
}
const noPyPI = once(() => missingPyPI(BOTOCORE))
const fromPyPI = once(() => installPython(PACKAGES))
const ownPython = once(() => (noPyPI() === undefined ? undefined : systemPython()))

/** Signatures of requests that are in no recorded vector. */
const botocore: Peer = {
  name: 'botocore',
  missing: () => (ownPython() === undefined ? noPyPI() : undefined),
  run() {
    const cases = [...signingCases(500, 1_000), ...s3SigningCases(500, 1_000)]
    const { version, authorizations } = botocoreAuthorizations(ownPython() ?? fromPyPI(), cases)
    const different = cases.filter((one, index) => ourAuthorization(one) !== authorizations[index])
    for (const { method, url, service } of different.slice(0, 5))
      say(`botocore signs ${method} ${url} for ${service} differently`)
    say(`botocore ${version} ran: ${cases.length - different.length} of ${cases.length} signatures agree, half for S3`)
    return Promise.resolve(different.length === 0)
  },
}

/** STS and S3. */
const moto: Peer = {
  name: 'moto',
  missing: noPyPI,
  async run() {
    const wrong = await askMoto(fromPyPI())
    const what = 'AssumeRoleWithWebIdentity, and S3 that verifies signatures'
    say(`moto ran: ${what}: ${wrong.length === 0 ? 'right' : wrong.join(', ')}`)
    return wrong.length === 0
  },
}

/** The identity of the process, and roles that it assumes. */
const aws: Peer = {
  name: 'botocore and moto, own identity',
  missing: noPyPI,
  async run() {
    const { wrong, places } = await askAws(fromPyPI())
    const what = `the identity of the process in ${places} environments, and AssumeRole with tags, policies and external id`
    say(`botocore and moto ran: ${what}: ${wrong.length === 0 ? 'right' : wrong.join('; ')}`)
    return wrong.length === 0
  },
}

/** IAM and STS with trust policies; its botocore is another than ours. */
const trust: Peer = {
  name: 'MiniStack',
  missing: noPyPI,
  async run() {
    const python = installPython([MINISTACK])
    try {
      const { wrong, rows } = await askTrust(python)
      const what = `trust policies of docs/aws.md, external ids, tags, session policies and hubs, ${rows} callers`
      say(`MiniStack ran: ${what}: ${wrong.length === 0 ? 'right' : wrong.join('; ')}`)
      return wrong.length === 0
    } finally {
      python.close()
    }
  },
}

/** A client that can only start a command. */
const mcp: Peer = {
  name: 'MCP SDK for Python',
  missing: noPyPI,
  async run() {
    const { version, wrong, tried } = await askMcpClient(fromPyPI())
    const verdict = wrong.length === 0 ? 'right' : wrong.join(', ')
    say(`mcp ${version} ran: ${tried} times through extauth stdio to the lab, both eras: ${verdict}`)
    return wrong.length === 0
  },
}

/** Rules before its server: what is evaluated is what is parsed. */
const readings: Peer = {
  name: 'MCP SDK for Python, parsing',
  missing: noPyPI,
  async run() {
    const read = await readingsOfPython(fromPyPI())
    const verdict = read.wrong.length === 0 ? 'right' : read.wrong.slice(0, 5).join('; ')
    say(`mcp ran: ${readingText(read)}: ${verdict}`)
    return read.wrong.length === 0
  },
}

/** The client again, before the embedded authorization server. */
const login: Peer = {
  name: 'MCP SDK for Python, logging in',
  missing: noPyPI,
  async run() {
    const wrong = await askPythonClient(fromPyPI())
    const verdict = wrong.length === 0 ? 'right' : wrong.join('; ')
    say(`mcp ran: 6 logins from the bare URL, tool results and renewal, both eras: ${verdict}`)
    return wrong.length === 0
  },
}

/** Traces, read by the definitions that OpenTelemetry publishes. */
const otlp: Peer = {
  name: 'OpenTelemetry',
  missing: noPyPI,
  async run() {
    const { version, wrong } = await askOtlpReceiver(fromPyPI())
    const verdict = wrong.length === 0 ? 'right' : wrong.join('; ')
    say(`opentelemetry-proto ${version} ran: the trace of an exchanged request, in protobuf: ${verdict}`)
    return wrong.length === 0
  },
}

/** An upstream of the embedded authorization server, and the token endpoint of docs/keycloak.md. */
const keycloak: Peer = {
  name: 'Keycloak',
  missing: missingKeycloak,
  async run() {
    const world = await createWorld()
    let close = () => {}
    try {
      const realms = { peer: peerRealm(world), company: companyRealm(world) }
      const running = await startKeycloak(world.authority, realms)
      close = () => running.close()
      let isRight = true
      const report = (what: string, wrong: readonly string[]): void => {
        say(`Keycloak ${VERSION} ran: ${what}: ${wrong.length === 0 ? 'right' : wrong.join('; ')}`)
        isRight &&= wrong.length === 0
      }
      for (const clientId of Object.keys(LOGINS))
        report(`login and refresh through client "${clientId}"`, await askLogin(running, world, clientId))
      const { wrong, rows, noAssertion } = await askProxy(running, world)
      const ways = 'client-secret, client-jwt, client-x509, federated (projected token, SVID)'
      const grants = 'token exchange, introspection, client_credentials, jwt-bearer (obo, second leg of xaa)'
      report(`${rows} routes of docs/keycloak.md, ${ways}; ${grants}; thumbprints by openssl`, wrong)
      say(
        `Keycloak ${VERSION} has no first leg of xaa (${noAssertion}) and no path of Entra ID: stand-ins had those parts`,
      )
      return isRight
    } finally {
      close()
      await world.close()
    }
  },
}

const all = [
  botocore,
  moto,
  aws,
  trust,
  mcp,
  readings,
  login,
  otlp,
  editorPeer(say),
  mcpRemotePeer(say),
  shellPeer('zsh', say),
  shellPeer('fish', say),
  goPeer(say),
  javaPeer(say),
  gatewaysPeer(say),
  keycloak,
]
const chosen = chosenOf(all, values.only)
if (chosen.length === 0) {
  say(`none has "${values.only}" in its name; there are ${all.map(({ name }) => name).join('; ')}`)
  process.exitCode = 2
} else process.exitCode = await runPeers(chosen, say)
