import { isLoopbackBind } from '../../fields/index.ts'
import { fileProblem, type Located, type Problem } from '../documents/problem.ts'
import type { InspectorMode, ProxyConfig } from '../../resources/index.ts'

/**
 * What the inspector captures: as the command line says, else as the file says; without a file (short form, manifests alone in
 * the short form) everything where only this machine can look. Bodies may hold anything, so that they are refused where
 * the admin listener has no guard but its being unreachable. An admin address that other machines reach serves no guarded
 * endpoint without a token: the inspector would capture requests for no one, which is a warning.
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
  { problems, warnings }: { readonly problems: Problem[]; readonly warnings: Problem[] },
): InspectorMode {
  const admin = proxy?.document.spec.admin
  const isLocal = isLoopbackBind(adminAddress)
  const mode = option ?? admin?.inspector ?? (isShortForm && isLocal ? 'bodies' : 'off')
  if (mode === 'off' || isLocal || admin?.tokenFile !== undefined) return mode
  const at = (message: string): Problem =>
    option === undefined && proxy !== undefined
      ? proxy.problem(['spec', 'admin', 'inspector'], message)
      : fileProblem('--inspector', message)
  const expected = 'expected an admin address on loopback, a Unix socket, or admin.tokenFile'
  if (mode === 'bodies')
    problems.push(at(`bodies of requests are shown only behind a guard, ${expected}; "heads" shows no bodies`))
  else
    warnings.push(
      at(
        `the admin address ${adminAddress} is open to other machines, so that the inspector is not served; ${expected}`,
      ),
    )
  return mode
}
