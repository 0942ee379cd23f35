import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'

export const DEPLOY = path.join(import.meta.dirname, '../../../config/deploy')

const labels = z.record(z.string(), z.string())
const metadata = z.looseObject({ name: z.string(), namespace: z.literal('mcp') })
const selector = z.strictObject({ matchLabels: labels })
const port = z.union([z.number(), z.string()])
const httpProbe = z.looseObject({ httpGet: z.strictObject({ path: z.string(), port }) })
const execProbe = z.looseObject({ exec: z.strictObject({ command: z.array(z.string()).min(1) }) })
const probe = z.union([httpProbe, execProbe])
const quantities = z.record(z.string(), z.string())

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  args: z.array(z.string()).default([]),
  ports: z.array(z.strictObject({ name: z.string(), containerPort: z.int() })).default([]),
  startupProbe: probe.optional(),
  readinessProbe: probe,
  livenessProbe: probe,
  restartPolicy: z.literal('Always').optional(),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })).default([]),
  resources: z.strictObject({ requests: quantities, limits: quantities }),
  lifecycle: z.looseObject({ preStop: z.strictObject({ sleep: z.strictObject({ seconds: z.int() }) }) }).optional(),
  securityContext: z.looseObject({}),
  volumeMounts: z
    .array(z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.literal(true) }))
    .default([]),
})
export type Container = z.output<typeof container>

const volume = z.strictObject({
  name: z.string(),
  configMap: z.strictObject({ name: z.string() }).optional(),
  secret: z.strictObject({ secretName: z.string(), defaultMode: z.int() }).optional(),
  projected: z
    .strictObject({
      defaultMode: z.int(),
      sources: z.array(
        z.strictObject({
          serviceAccountToken: z.looseObject({ path: z.string() }).optional(),
          configMap: z
            .strictObject({ name: z.string(), items: z.array(z.strictObject({ key: z.string(), path: z.string() })) })
            .optional(),
        }),
      ),
    })
    .optional(),
})
export type Volume = z.output<typeof volume>

const KINDS = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('ConfigMap'), metadata, data: labels }),
  z.looseObject({ kind: z.literal('Secret'), metadata, stringData: labels }),
  z.looseObject({
    kind: z.literal('Service'),
    metadata,
    spec: z.looseObject({
      selector: labels,
      ports: z.array(z.strictObject({ name: z.string(), port: z.int(), targetPort: z.string() })),
    }),
  }),
  z.looseObject({ kind: z.literal('PodDisruptionBudget'), metadata, spec: z.looseObject({ selector }) }),
  z.looseObject({
    kind: z.literal('NetworkPolicy'),
    metadata,
    spec: z.looseObject({
      podSelector: selector,
      ingress: z.array(z.looseObject({ ports: z.array(z.looseObject({ port: z.int() })) })),
      egress: z
        .array(z.looseObject({ to: z.array(z.unknown()), ports: z.array(z.looseObject({ port: z.int() })) }))
        .optional(),
    }),
  }),
  z.looseObject({
    kind: z.literal('Deployment'),
    metadata,
    spec: z.looseObject({
      replicas: z.int(),
      selector,
      template: z.looseObject({
        metadata: z.looseObject({ labels, annotations: labels }),
        spec: z.looseObject({
          automountServiceAccountToken: z.boolean(),
          enableServiceLinks: z.boolean(),
          terminationGracePeriodSeconds: z.int(),
          securityContext: z.looseObject({}),
          initContainers: z.array(container).default([]),
          containers: z.array(container),
          volumes: z.array(volume),
        }),
      }),
    }),
  }),
])
export type Manifest = z.output<typeof KINDS>
type OfKind<K extends Manifest['kind']> = Extract<Manifest, { kind: K }>

export const FILES = readdirSync(DEPLOY).filter((name) => name.endsWith('.yaml'))

/** All objects of one file; octal modes are read as Kubernetes reads them. */
export function readManifests(file: string): Manifest[] {
  const documents = parseAllDocuments(readFileSync(path.join(DEPLOY, file), 'utf8'), { version: '1.1' })
  return documents.map((document) => {
    if (document.errors.length > 0) throw new Error(`${file}: ${document.errors.join(', ')}`)
    return KINDS.parse(document.toJS())
  })
}

export const ofKind = <K extends Manifest['kind']>(manifests: readonly Manifest[], kind: K): OfKind<K>[] =>
  manifests.filter((manifest): manifest is OfKind<K> => manifest.kind === kind)

/** The one object of this kind in a file. */
export function only<K extends Manifest['kind']>(manifests: readonly Manifest[], kind: K): OfKind<K> {
  const [found, another] = ofKind(manifests, kind)
  if (found === undefined || another !== undefined) throw new Error(`expected one ${kind}`)
  return found
}

/** Every file that a container finds below its mounts, by its path; what others make is in `elsewhere`. */
export function mountedFiles(
  manifests: readonly Manifest[],
  { volumeMounts }: Container,
  elsewhere: Readonly<Record<string, readonly string[]>>,
): Map<string, { readonly mount: string; readonly text?: string | undefined }> {
  const { volumes } = only(manifests, 'Deployment').spec.template.spec
  const files = new Map<string, { mount: string; text?: string | undefined }>()
  for (const { name, mountPath } of volumeMounts) {
    const mounted = volumes.find((item) => item.name === name)
    if (mounted === undefined) throw new Error(`there is no volume ${name}`)
    for (const [file, text] of filesOf(manifests, mounted, elsewhere))
      files.set(`${mountPath}/${file}`, { mount: mountPath, text })
  }
  return files
}

function filesOf(
  manifests: readonly Manifest[],
  { configMap, secret, projected }: Volume,
  elsewhere: Readonly<Record<string, readonly string[]>>,
): [file: string, text?: string][] {
  if (configMap !== undefined) {
    const found = ofKind(manifests, 'ConfigMap').find((item) => item.metadata.name === configMap.name)
    return Object.entries(found?.data ?? {})
  }
  if (secret !== undefined) {
    const found = ofKind(manifests, 'Secret').find((item) => item.metadata.name === secret.secretName)
    const keys = found === undefined ? elsewhere[secret.secretName] : Object.keys(found.stringData)
    return (keys ?? []).map((key) => [key])
  }
  const sources = projected?.sources ?? []
  const tokens = sources.flatMap(({ serviceAccountToken }) => serviceAccountToken?.path ?? [])
  const copied = sources.flatMap((source) => source.configMap?.items ?? []).map((item) => item.path)
  return tokens.concat(copied).map((file) => [file])
}
