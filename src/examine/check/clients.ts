import { asFailure } from '../../core/index.ts'
import { clientEnds } from '../../oauth/index.ts'
import type { ClientAuth } from '../../resources/index.ts'
import type { CheckContext } from './context.ts'
import { about, type CheckResult } from './result.ts'

/** The tokens in files that we authenticate with at authorization servers; secrets have lines of their own. */
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
      const remedy = 'Mount the projected token there, or name its file in tokenFile.path.'
      return [line.failed(asFailure(error).detail ?? 'it cannot be read', remedy)]
    }
    const ends = clientEnds(client, obtain)
    const renew = 'Put its successor there; it is taken up without a restart.'
    return ends.length === 0
      ? [line.ok('readable; it does not say when it ends')]
      : ends.map(({ endsAtMs, renewByMs }) => {
          const end = new Date(endsAtMs).toISOString()
          if (endsAtMs <= clock.now()) return line.failed(`ended on ${end}`, renew)
          return renewByMs <= clock.now() ? line.warning(`ends on ${end}`, renew) : line.ok(`good until ${end}`)
        })
  })
}
