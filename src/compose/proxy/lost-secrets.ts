import type { Clock } from '../../core/index.ts'
import type { Problem, ResolvedProxy } from '../../load/index.ts'
import { unusableSecrets } from '../check-files.ts'

/**
 * What a reload would take away from routes that serve now: secrets that only `next` names and that are not there, or cannot
 * be used. Routes that are new, or that lack a secret already, have nothing to lose: they wait for theirs (decisions §6). In a
 * pod this is the rule: what it mounts was settled when it was made, and its successors have the new ones (ADR 0378).
 */
export async function lostSecrets(before: ResolvedProxy, next: ResolvedProxy, clock: Clock): Promise<Problem[]> {
  const named = new Set(before.places.secrets.map(({ label }) => label))
  const added = next.places.secrets.filter(({ label }) => !named.has(label))
  if (added.length === 0) return []
  const lacking = await unusableSecrets(added, before.secretsDirectory, clock)
  if (lacking.length === 0) return []
  const idle = new Set(
    (await unusableSecrets(before.places.secrets, before.secretsDirectory, clock)).flatMap(({ routes = [] }) => routes),
  )
  const serving = new Set(before.routes.map(({ name }) => name).filter((name) => !idle.has(name)))
  return lacking.filter(({ routes = [] }) => routes.some((name) => serving.has(name)))
}
