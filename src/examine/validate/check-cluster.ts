import { DEFAULT_API_GROUP, type Declared, type Loaded, type Problem } from '../../load/index.ts'

/** `path: message`, as in the operator's problems. */
const WORDS = /^((?:spec|metadata)[^: ]*): (.*)$/s

/**
 * Problems that keep the operator from creating pods for each MCPRemoteProxy of these files, with locations. Other
 * workloads get no pods from the operator.
 */
export async function checkCluster(loaded: Loaded, apiGroup: string = DEFAULT_API_GROUP): Promise<Problem[]> {
  // Imported on use: no other test needs the operator.
  const { proxyProblems } = await import('../../operator/index.ts')
  const objects = loaded.declared.map(objectOf)
  const settings = { apiGroup, restrictPodTemplate: false }
  return loaded.declared
    .filter(({ kind }) => kind === 'MCPRemoteProxy')
    .flatMap((declared) =>
      proxyProblems(objectOf(declared), objects, settings).map((words) => {
        const [, path = '', message = words] = WORDS.exec(words) ?? []
        return declared.place.problem(stepsOf(path), message)
      }),
    )
}

/** The document as an API object. */
function objectOf({ kind, name, namespace, place }: Declared) {
  const { apiVersion, spec } = place.document as { readonly apiVersion: string; readonly spec?: unknown }
  return { apiVersion, kind, metadata: { name, namespace, uid: `${kind}/${name}`, generation: 1 }, spec }
}

/** The steps of a path such as `spec.podTemplateSpec.spec.containers[0].image`. */
const stepsOf = (path: string): (string | number)[] =>
  [...path.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([\w$-]+)/g)].map(([, index, quoted, name = '']) =>
    index === undefined ? (quoted ?? name) : Number(index),
  )
