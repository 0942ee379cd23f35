import { type Call, CommandFailed, command } from './command.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import type { ConnectionList } from '../connections/index.ts'
import { parseListenAddress } from '../listen/index.ts'
import { ADMIN_OPTION, askAdmin, DEFAULT_ADMIN, NoResponse } from './admin-client.ts'
import { FILE, TEXT } from './options/option-values.ts'
import type { CommandSpec } from './options/options.ts'
import { tokenIn } from './token-file.ts'

const CONNECTIONS_SPEC: CommandSpec = {
  name: 'extauth connections',
  summary: 'Lists the connected accounts of a running proxy, or ends those of one caller.',
  options: {
    admin: ADMIN_OPTION,
    'admin-token-file': {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'File with the token of the admin listener (admin.tokenFile). Not needed on loopback.',
    },
    provider: { type: 'string', is: TEXT, value: 'NAME', help: 'Only connections of this provider.' },
    issuer: { type: 'string', is: TEXT, value: 'URL', help: 'With --subject: only one caller, `iss` of its tokens.' },
    subject: { type: 'string', is: TEXT, value: 'SUB', help: 'With --issuer: `sub` of the tokens of the caller.' },
    disconnect: { type: 'boolean', help: 'Ends the connections of the caller instead of listing them.' },
    json: { type: 'boolean', help: 'Prints one JSON object per page.' },
  },
  notes: [
    'Callers are listed by a keyed hash; --issuer and --subject find one. No credential is printed.',
    '',
    'Examples:',
    '  extauth connections',
    '  extauth connections --disconnect --issuer https://idp.example.com --subject alice --provider github',
    '',
    'Exit codes: 0 done, 1 refused or no response within 2 s, 2 usage.',
  ].join('\n'),
}

/** `extauth connections`: `/connections` of the admin listener (connections.md §3). */
export const runConnections = command(CONNECTIONS_SPEC, async ({ options, io }) => {
  const [issuer, subject] = [options.text('issuer'), options.text('subject')]
  if ((issuer === undefined) !== (subject === undefined))
    throw new UsageError('--issuer and --subject must be given together')
  const disconnects = options.flag('disconnect')
  if (disconnects && issuer === undefined) throw new UsageError('--disconnect requires --issuer and --subject')
  const filter = new URLSearchParams()
  for (const name of ['issuer', 'subject', 'provider']) {
    const value = options.text(name)
    if (value !== undefined) filter.set(name, value)
  }
  if (disconnects) {
    const { disconnected } = (await ask({ options, io }, 'DELETE', filter)) as { readonly disconnected: number }
    io.stdout(options.flag('json') ? `${JSON.stringify({ disconnected })}\n` : `disconnected: ${disconnected}\n`)
    return EXIT.fine
  }
  for (let isFirst = true; ; isFirst = false) {
    const page = (await ask({ options, io }, 'GET', filter)) as ConnectionList
    io.stdout(options.flag('json') ? `${JSON.stringify(page)}\n` : textOf(page, isFirst))
    if (page.next === undefined) return EXIT.fine
    filter.set('after', page.next)
  }
})

async function ask({ options, io }: Call, method: 'GET' | 'DELETE', query: URLSearchParams): Promise<unknown> {
  const token = await tokenIn(options.text('admin-token-file'), io)
  const headers = token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` }
  const path = query.size === 0 ? '/connections' : `/connections?${query.toString()}`
  const address = parseListenAddress(options.text('admin') ?? DEFAULT_ADMIN)
  try {
    const { status, text } = await askAdmin(address, { method, path, headers })
    if (status === 200) return JSON.parse(text)
    throw new CommandFailed(`the admin listener answered ${status}: ${text.slice(0, 300)}`)
  } catch (error) {
    throw error instanceof NoResponse ? new CommandFailed(error.message) : error
  }
}

function textOf({ providers, callers }: ConnectionList, isFirst: boolean): string {
  const counts = Object.entries(providers).map(
    ([provider, { connected, broken }]) => `${provider}: ${connected} connected, ${broken} broken\n`,
  )
  const rows = callers.map(({ caller, connections }) => {
    const each = connections.map(({ provider, state }) => (state === 'broken' ? `${provider} (broken)` : provider))
    return `  ${caller}  ${each.join(', ')}\n`
  })
  return (isFirst ? counts.join('') || 'no connected accounts\n' : '') + rows.join('')
}
