import { nearest } from '../../core/index.ts'
import { DEFAULT_API_GROUP, type Loaded, type Located, type MarkedPod, type Problem } from '../../load/index.ts'

/** What is found about pods. */
export interface PodFindings {
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/**
 * Judges the labels and annotations of pods, and of templates of pods, as the operator's webhook does when a pod is made:
 * what it would refuse is a problem. What may be somewhere else than in these files is a warning.
 */
export async function checkPods(loaded: Loaded, apiGroup: string = DEFAULT_API_GROUP): Promise<PodFindings> {
  if (loaded.pods.length === 0) return { problems: [], warnings: [] }
  // Only here: whoever has no such pods needs nothing of the operator.
  const { podKeys, readInjection, unclearLabel, unfitForPods } = await import('../../operator/index.ts')
  const keys = podKeys(apiGroup)
  const [problems, warnings]: [Problem[], Problem[]] = [[], []]
  for (const pod of loaded.pods) {
    const { labels, annotations, namespace, spec } = pod.document
    warnings.push(...unknownMarks(pod, apiGroup, Object.values(keys)))
    problems.push(...unquotedMarks(pod))
    const metadata = { name: pod.document.path.join('.'), labels, annotations }
    const read = readInjection({ metadata, spec }, keys)
    if (!read.wanted) {
      const unclear = unclearLabel(labels, keys)
      if (unclear !== undefined) warnings.push(problemAt(pod, unclear))
      else if (annotations[keys.externalAuth] !== undefined)
        warnings.push(problemAt(pod, `nothing is injected without the label ${keys.inject}: "true" of the pod`))
      continue
    }
    problems.push(...(read.problems ?? []).map((message) => problemAt(pod, message)))
    if (read.request === undefined) continue
    const { config } = read.request
    const isIt = ({
      metadata,
    }: {
      readonly metadata: { readonly name: string; readonly namespace: string }
    }): boolean => metadata.name === config && metadata.namespace === namespace
    const found = loaded.auths.find(({ document }) => isIt(document))?.document
    const unfit = found === undefined ? undefined : unfitForPods(found.spec.type)
    if (unfit !== undefined) problems.push(problemAt(pod, `"${config}" can't run as a sidecar: ${unfit}`))
    if (
      found === undefined &&
      !loaded.declared.some(({ name, namespace: its }) => name === config && its === namespace)
    )
      warnings.push(
        problemAt(pod, `there is no MCPExternalAuthConfig "${config}" in namespace "${namespace}" among these files`),
      )
  }
  return { problems, warnings }
}

const problemAt = (pod: Located<MarkedPod>, message: string): Problem =>
  pod.problem([...pod.document.path, 'metadata', 'annotations'], message)

/** Nobody takes a pod with a number or flag among its labels and annotations. */
const unquotedMarks = (pod: Located<MarkedPod>): Problem[] =>
  pod.document.unquoted.map(([where, key]) => {
    const value = pod.document[where][key] ?? ''
    return pod.problem([...pod.document.path, 'metadata', where, key], `expected a text, in quotes: "${value}"`)
  })

/** Labels and annotations of our group that mean nothing. */
function unknownMarks(pod: Located<MarkedPod>, apiGroup: string, known: readonly string[]): Problem[] {
  const marks = (['labels', 'annotations'] as const).flatMap((where) =>
    Object.keys(pod.document[where]).map((key) => [where, key] as const),
  )
  return marks
    .filter(([, key]) => key.startsWith(`${apiGroup}/`) && !known.includes(key))
    .map(([where, key]) => {
      const meant = nearest(key, known)
      const hint = meant === undefined ? '' : `, did you mean "${meant}"?`
      return pod.problem([...pod.document.path, 'metadata', where, key], `"${key}" is not known${hint}`, { at: 'key' })
    })
}
