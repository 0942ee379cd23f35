type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Name of the container that runs the proxy. */
export const CONTAINER = 'extauth'
/** Its name in manifests of the original controller. */
const EARLIER_CONTAINER = 'toolhive'

/** Whether a container of a patch is the proxy's own: every other container needs an image. */
const isOwn = (container: Json): boolean =>
  container['name'] === CONTAINER || (container['name'] === EARLIER_CONTAINER && container['image'] === undefined)

const LISTS = ['containers', 'initContainers'] as const

/** A `podTemplateSpec` with the container of the proxy renamed to its name in the pods. */
export function withOwnContainer(patch: object | undefined): object | undefined {
  const spec = isObject(patch) ? patch['spec'] : undefined
  if (!isObject(patch) || !isObject(spec) || !Array.isArray(spec['containers'])) return patch
  const containers = spec['containers'].map((one: unknown) =>
    isObject(one) && isOwn(one) ? { ...one, name: CONTAINER } : one,
  )
  return { ...patch, spec: { ...spec, containers } }
}

/** Containers of a `podTemplateSpec` that cannot run: the API server would reject the Deployment. */
export function podTemplateProblems(patch: object | undefined): string[] {
  const spec = isObject(patch) ? patch['spec'] : undefined
  if (!isObject(spec)) return []
  return LISTS.flatMap((list) => {
    const containers: unknown[] = Array.isArray(spec[list]) ? spec[list] : []
    return containers.flatMap((one, index) => {
      const isPatch = isObject(one) && one['$patch'] !== undefined
      const isRunnable = isObject(one) && typeof one['image'] === 'string' && one['image'] !== ''
      if (isPatch || isRunnable || (list === 'containers' && isObject(one) && isOwn(one))) return []
      const path = `spec.podTemplateSpec.spec.${list}[${index}].image`
      return [`${path}: missing, expected an image, or the name "${CONTAINER}" for the container of the proxy`]
    })
  })
}
