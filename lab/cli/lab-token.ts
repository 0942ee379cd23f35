import { OutboundError, SYSTEM_CLOCK } from '../../src/core/index.ts'
import { createOutbound } from '../../src/net/index.ts'
import { EXIT, UsageError } from '../../src/compose/index.ts'
import { LAB_PORTS } from './lab-ports.ts'
import {
  CLAIM,
  PORT,
  SIGNED_DURATION,
  TEXT,
  oneOf,
  signedSeconds,
  type CommandSpec,
  type Parsed,
} from '../../src/cli/options/index.ts'
import { command, CommandFailed, ownCommand } from '../../src/cli/index.ts'

/** Where a command finds the identity provider of the running lab. */
export const IDP_PORT = {
  type: 'string',
  is: PORT,
  value: 'PORT',
  help: `Where the lab's identity provider is. Default ${LAB_PORTS.identity}.`,
} as const

/** The table of its options. */
export const LAB_TOKEN_SPEC: CommandSpec = {
  name: 'extauth lab token',
  summary: "Prints a token of the running lab's identity provider, and nothing else, to standard output.",
  options: {
    sub: { type: 'string', is: TEXT, value: 'NAME', help: 'Whom the token is about. Required.' },
    groups: { type: 'string', is: TEXT, value: 'A,B', help: 'The claim `groups`.' },
    ttl: {
      type: 'string',
      is: SIGNED_DURATION,
      value: 'DURATION',
      help: 'Lifetime: 90s, 5m, 1h; -1m has already expired. Default 1h.',
    },
    aud: { type: 'string', is: TEXT, multiple: true, value: 'AUDIENCE', help: 'Audience. Default extauth-lab.' },
    scope: { type: 'string', is: TEXT, value: 'SCOPES', help: 'The claim `scope`.' },
    claim: {
      type: 'string',
      is: CLAIM,
      multiple: true,
      value: 'NAME=VALUE',
      help: 'One more claim; a value that is JSON is read as JSON.',
    },
    opaque: { type: 'boolean', help: 'An opaque token, known only by introspection, instead of a JWT.' },
    alg: { type: 'string', is: oneOf(['RS256', 'ES256']), value: 'ALG', help: 'RS256 or ES256. Default RS256.' },
    'idp-port': IDP_PORT,
  },
  notes: 'Exit codes: 0 printed, 1 the lab does not run or refuses, 2 usage.',
}

/** `extauth lab token`: exit code 0 and the token on standard output, 1 when the lab does not run or refuses. */
export const runLabToken = command(LAB_TOKEN_SPEC, async ({ options, io }) => {
  io.stdout(`${await mintToken(options.text('idp-port'), requestOf(options))}\n`)
  return EXIT.fine
})

/** A token of the running lab. Throws `CommandFailed` when the lab does not run or refuses. */
export async function mintToken(idpPort: string | undefined, wanted: object): Promise<string> {
  const port = idpPort ?? String(LAB_PORTS.identity)
  const outbound = createOutbound({ name: 'lab', clock: SYSTEM_CLOCK, breaker: false })
  try {
    const response = await outbound.request({
      method: 'POST',
      url: `http://127.0.0.1:${port}/lab/token`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wanted),
    })
    const answer = JSON.parse(response.body.toString('utf8')) as { access_token?: unknown; error_description?: unknown }
    if (response.status !== 200 || typeof answer.access_token !== 'string') {
      const reason = typeof answer.error_description === 'string' ? answer.error_description : response.status
      throw new CommandFailed(`refused: ${reason}`)
    }
    return answer.access_token
  } catch (error) {
    if (!(error instanceof OutboundError) && !(error instanceof SyntaxError)) throw error
    throw new CommandFailed(`no lab answers at 127.0.0.1:${port}. Start it with: ${ownCommand()} lab`)
  } finally {
    await outbound.close()
  }
}

function requestOf(options: Parsed): object {
  const sub = options.text('sub')
  if (sub === undefined) throw new UsageError('needs --sub NAME')
  const groups = options.text('groups')
  const aud = options.list('aud')
  const scope = options.text('scope')
  const alg = options.text('alg')
  return {
    sub,
    ttlSeconds: Math.floor(signedSeconds(options.text('ttl') ?? '1h') ?? 0),
    claims: Object.fromEntries(options.list('claim').map(claimOf)),
    opaque: options.flag('opaque'),
    ...(groups === undefined ? {} : { groups: groups.split(',').filter((group) => group !== '') }),
    ...(aud.length === 0 ? {} : { aud }),
    ...(scope === undefined ? {} : { scope }),
    ...(alg === undefined ? {} : { alg }),
  }
}

function claimOf(text: string): [string, unknown] {
  const at = text.indexOf('=')
  const [name, value] = [text.slice(0, at), text.slice(at + 1)]
  try {
    return [name, JSON.parse(value)]
  } catch {
    return [name, value]
  }
}
