import { asFailure } from '../../core/index.ts'
import { credentialExpiries } from '../../oauth/index.ts'
import type { ClientAuth } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult } from './result.ts'

/** Tests the token files that authenticate the proxy at authorization servers. Secrets have their own lines. */
export function checkClients(
  whose: string,
  clients: readonly (ClientAuth | undefined)[],
  { obtain, clock }: CheckContext,
): CheckResult[] {
  const withFile = clients.filter((client) => client?.method === 'tokenFile')
  return withFile.flatMap((client) => {
    const token = obtain.tokenFile(client?.tokenFile?.path)
    const line = about('file', `${whose} tokenFile ${token.label}`)
    try {
      token.current()
    } catch (error) {
      const remedy = 'Mount the projected token there, or correct tokenFile.path.'
      return [line.failed(asFailure(error).detail ?? 'unreadable', remedy)]
    }
    const ends = credentialExpiries(client, obtain)
    const renew = 'Write a new token to the file; it applies without a restart.'
    return ends.length === 0
      ? [line.ok('readable; no expiry')]
      : ends.map(({ endsAtMs, renewByMs }) => {
          const end = new Date(endsAtMs).toISOString()
          if (endsAtMs <= clock.now()) return line.failed(`expired on ${end}`, renew)
          return renewByMs <= clock.now() ? line.warning(`expires on ${end}`, renew) : line.ok(`valid until ${end}`)
        })
  })
}
