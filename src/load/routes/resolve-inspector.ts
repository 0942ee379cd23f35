import { isLoopbackBind } from '../../fields/index.ts'
import { fileProblem, type Located, type Problem } from '../documents/problem.ts'
import type { InspectorMode, ProxyConfig } from '../../resources/index.ts'

/**
 * The capture mode of the inspector: from the command line, else from the file. Without a file (short form, manifests
 * alone) it captures everything if the admin listener is local. Bodies may contain anything, so they are rejected
 * where only unreachability protects the admin listener. An admin address open to other machines serves no guarded
 * endpoint without a token: capturing would be useless, which is a warning.
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
      at(`the admin address ${adminAddress} is open to other machines, so the inspector is not served; ${expected}`),
    )
  return mode
}
