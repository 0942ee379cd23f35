import { OutboundError, SYSTEM_CLOCK } from '../../src/core/index.ts'
import { STATELESS_REVISION, statelessHeaders } from '../../src/mcp/index.ts'
import { createOutbound } from '../../src/net/index.ts'
import { EXIT, UsageError } from '../../src/compose/index.ts'
import { personalKeyOf } from '../index.ts'
import { oneOf, TEXT, type CommandSpec } from '../../src/cli/options/index.ts'
import { command } from '../../src/cli/index.ts'
import { labDoesNotRun, PROXY_PORT, refuse } from './lab-login.ts'
import { connectThrough } from './lab-pages.ts'
import { LAB_PORTS } from './lab-ports.ts'
import { IDP_PORT, mintToken } from './lab-token.ts'

/** The connection providers of config/lab, and a route that needs each. */
const ROUTES: Readonly<Record<string, string>> = { workspace: '/connected', tracker: '/connected-key' }
const PROVIDERS = Object.keys(ROUTES)

/** A call without a session (MCP 2026-07-28), of a client that shows text only. */
const PARAMS = {
  name: 'show_request',
  arguments: {},
  _meta: {
    'io.modelcontextprotocol/protocolVersion': STATELESS_REVISION,
    'io.modelcontextprotocol/clientInfo': { name: 'extauth lab connect', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  },
}
const CALL = {
  headers: {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...statelessHeaders(STATELESS_REVISION, 'tools/call', PARAMS),
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: PARAMS }),
}

/** The table of its options. */
export const LAB_CONNECT_SPEC: CommandSpec = {
  name: 'extauth lab connect',
  summary:
    'Connects an account of a user of the running lab, without a browser: calls a route as the user, opens the link that\nthe proxy returns, and presses all buttons.',
  options: {
    sub: { type: 'string', is: TEXT, value: 'NAME', help: 'The user: alice, bob, carol. Required.' },
    provider: {
      type: 'string',
      is: oneOf(PROVIDERS),
      value: 'NAME',
      help: 'workspace (a login there) or tracker (a key in a form). Default workspace.',
    },
    port: PROXY_PORT,
    'idp-port': IDP_PORT,
  },
  notes: 'Exit codes: 0 connected, 1 the lab does not run or the account was not connected, 2 usage.',
}

/** `extauth lab connect`: exit code 0 and the heading of the last page, 1 when the lab does not run or refuses. */
export const runLabConnect = command(LAB_CONNECT_SPEC, async ({ options, io }) => {
  const sub = options.text('sub')
  if (sub === undefined) throw new UsageError('needs --sub NAME')
  const provider = options.text('provider') ?? 'workspace'
  const token = await mintToken(options.text('idp-port'), { sub })
  const url = `http://127.0.0.1:${options.text('port') ?? LAB_PORTS.proxy}${ROUTES[provider]}`
  try {
    const link = await linkFor(url, token)
    const done =
      link === undefined
        ? `${provider} is connected already`
        : await connectThrough(link, { user: sub, key: personalKeyOf(sub) }, refuse)
    io.stdout(`${done}\n`)
    return EXIT.fine
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    throw labDoesNotRun()
  }
})

/** The link in the response to a call of this caller; undefined if the account is connected. */
export async function linkFor(url: string, token: string): Promise<string | undefined> {
  const outbound = createOutbound({ name: 'lab', clock: SYSTEM_CLOCK, breaker: false })
  try {
    const { status, body } = await outbound.request({
      method: 'POST',
      url,
      headers: { ...CALL.headers, authorization: `Bearer ${token}` },
      body: CALL.body,
    })
    const link = /https?:[^\s"]+\/connect\/[\w-]+/.exec(body.toString('utf8'))?.[0]
    if (link === undefined && status !== 200) return refuse(`the call was refused with status ${status}`)
    return link
  } finally {
    await outbound.close()
  }
}
