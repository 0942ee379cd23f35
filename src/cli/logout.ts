import { CredentialRefusal } from '../core/index.ts'
import { revoke } from '../login/index.ts'
import { EXIT } from '../compose/index.ts'
import { command } from './command.ts'
import { loginOutbound, openUserStore } from '../compose/login/index.ts'
import { CA_FILE } from './options/login-options.ts'
import { HTTP_URL } from './options/option-values.ts'
import type { CommandSpec } from './options/options.ts'

export const LOGOUT_SPEC: CommandSpec = {
  name: 'extauth logout',
  summary: 'Deletes logins of `extauth stdio --login` and revokes their tokens if the server supports it.',
  options: {
    url: {
      type: 'string',
      is: HTTP_URL,
      value: 'URL',
      help: 'Deletes the login of this MCP server only. Default: all.',
    },
    'ca-file': CA_FILE,
  },
  notes: 'Exit codes: 0 deleted (or there was none), 1 deleted here but not revoked, 2 usage.',
}

/** `extauth logout`: deletes stored logins even if revocation fails. */
export const runLogout = command(LOGOUT_SPEC, async ({ options: parsed, io }) => {
  const url = parsed.text('url')
  const wanted = url === undefined ? undefined : new URL(url).href
  const store = openUserStore(io.env)
  const records = (await store.all()).filter(({ endpoint }) => wanted === undefined || endpoint === wanted)
  let exit: number = EXIT.fine
  for (const record of records) {
    const outbound = loginOutbound(new URL(record.endpoint), parsed.text('ca-file'), io.env)
    // Deleted locally first, so that no other process uses tokens being revoked.
    await store.forget(record)
    try {
      const isRevoked = await revoke(record, outbound)
      io.stdout(
        `${record.endpoint}: ${isRevoked ? 'deleted and revoked' : 'deleted; the server does not support revocation'}\n`,
      )
    } catch (error) {
      if (!(error instanceof CredentialRefusal)) throw error
      io.stderr(`extauth logout: ${record.endpoint}: deleted here, but its tokens were not revoked. ${error.message}\n`)
      exit = EXIT.failed
    } finally {
      await outbound.close()
    }
  }
  if (records.length === 0) io.stdout('No login is stored.\n')
  return exit
})
