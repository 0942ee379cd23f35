import { nearest } from '../../core/index.ts'
import { DEFAULT_API_GROUP, type Loaded, type Located, type MarkedPod, type Problem } from '../../load/index.ts'

export interface PodFindings {
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/**
 * Validates labels and annotations of pods and pod templates as the operator's webhook does. Rejections are problems.
 * References outside of these files are warnings.
 */
export async function checkPods(loaded: Loaded, apiGroup: string = DEFAULT_API_GROUP): Promise<PodFindings> {
  if (loaded.pods.length === 0) return { problems: [], warnings: [] }
  // Imported on use: only injected pods need the operator.
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
        warnings.push(problemAt(pod, `the pod is not injected: it lacks the label ${keys.inject}: "true"`))
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
    const unfit = found === undefined ? undefined : unfitForPods(found.spec)
    if (unfit !== undefined) problems.push(problemAt(pod, `"${config}" cannot run as a sidecar: ${unfit}`))
    if (
      found === undefined &&
      !loaded.declared.some(({ name, namespace: its }) => name === config && its === namespace)
    )
      warnings.push(
        problemAt(pod, `no MCPExternalAuthConfig "${config}" in namespace "${namespace}" among these files`),
      )
  }
  return { problems, warnings }
}

const problemAt = (pod: Located<MarkedPod>, message: string): Problem =>
  pod.problem([...pod.document.path, 'metadata', 'annotations'], message)

/** API servers reject pods with numbers or Booleans as label or annotation values. */
const unquotedMarks = (pod: Located<MarkedPod>): Problem[] =>
  pod.document.unquoted.map(([where, key]) => {
    const value = pod.document[where][key] ?? ''
    return pod.problem([...pod.document.path, 'metadata', where, key], `expected a string, in quotes: "${value}"`)
  })

/** Unknown labels and annotations of mcp-extauth's group. */
function unknownMarks(pod: Located<MarkedPod>, apiGroup: string, known: readonly string[]): Problem[] {
  const marks = (['labels', 'annotations'] as const).flatMap((where) =>
    Object.keys(pod.document[where]).map((key) => [where, key] as const),
  )
  return marks
    .filter(([, key]) => key.startsWith(`${apiGroup}/`) && !known.includes(key))
    .map(([where, key]) => {
      const meant = nearest(key, known)
      const hint = meant === undefined ? '' : `, did you mean "${meant}"?`
      return pod.problem([...pod.document.path, 'metadata', where, key], `unknown key "${key}"${hint}`, { at: 'key' })
    })
}
