import { isLoopbackBind } from '../../fields/index.ts'
import { fileProblem, type Located, type Problem } from '../documents/problem.ts'
import type { InspectorMode, ProxyConfig } from '../../resources/index.ts'

/**
 * What the inspector captures: as the command line says, else as the file says; without a file (short form, manifests alone in
 * the short form) everything where only this machine can look. Bodies may hold anything, so that they are refused where
 * the admin listener has no guard but its being unreachable.
 */
export function inspectorOf(
  option: InspectorMode | undefined,
  {
    proxy,
    isShortForm,
    adminAddress,
  }: {
    readonly proxy: Located<ProxyConfig> | undefined
    readonly isShortForm: boolean
    readonly adminAddress: string
  },
  problems: Problem[],
): InspectorMode {
  const admin = proxy?.document.spec.admin
  const isLocal = isLoopbackBind(adminAddress)
  const mode = option ?? admin?.inspector ?? (isShortForm && isLocal ? 'bodies' : 'off')
  if (mode === 'bodies' && !isLocal && admin?.tokenFile === undefined) {
    const message =
      'bodies of requests are shown only behind a guard, expected an admin address on loopback, a Unix socket, or admin.tokenFile; "heads" shows no bodies'
    problems.push(
      option === undefined && proxy !== undefined
        ? proxy.problem(['spec', 'admin', 'inspector'], message)
        : fileProblem('--inspector', message),
    )
  }
  return mode
}
