import { z } from 'zod'
import { authSection } from './auth-section.ts'
import { withRules, filePath, httpUrl, segmentName, trustedProxies } from '../fields/index.ts'

const source = () =>
  withRules(
    z.strictObject({
      file: filePath('registry file')
        .optional()
        .describe('One server.json, an array of them, or the answer of a registry.'),
      directory: filePath('registry directory').optional().describe('Directory of such files.'),
      url: httpUrl().optional().describe('Address of such a document.'),
      maxEntries: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe(
          'Most entries, all files or pages together; the bounds of bytes and pages grow with it. Default 50,000.',
        ),
    }),
    [
      {
        message: 'expected exactly one of "file", "directory" and "url"',
        holds: (value) => [value.file, value.directory, value.url].filter((item) => item !== undefined).length === 1,
        json: { oneOf: [{ required: ['file'] }, { required: ['directory'] }, { required: ['url'] }] },
      },
    ],
  )

const registry = () =>
  z.strictObject({
    name: segmentName().describe('Segment of the path: /registry/{name}/v0.1/servers.'),
    source: source().describe('Where the servers of this registry come from: one of the three.'),
  })

/** The registry file (decisions §7). A missing `auth` is mode oauth without providers, which is an error. */
export const registryConfig = () =>
  withRules(
    z.strictObject({
      auth: authSection().prefault({}).describe('Who may call. Mode oauth when missing.'),
      secretsDirectory: filePath('secrets directory')
        .default('./secrets')
        .describe(
          'Where secrets that `clientAuth` of a provider names are, as `<name>/<key>`. Extends the specification.',
        ),
      trustedProxies: trustedProxies(),
      registries: z.array(registry()).min(1).max(100).describe('The registries that are served.'),
    }),
    [
      {
        message: 'the names of registries must be unique',
        at: 'registries',
        holds: ({ registries }) => {
          if (!Array.isArray(registries)) return true
          const names = registries.map((item: unknown) => (item as { name?: unknown } | null)?.name)
          return new Set(names).size === names.length
        },
      },
    ],
  )

export type RegistryConfig = z.output<ReturnType<typeof registryConfig>>
