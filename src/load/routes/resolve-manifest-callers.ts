import path from 'node:path'
import {
  type AuthSection,
  type CaBundleRef,
  type ManifestProvider,
  type ManifestSection,
  type Provider,
} from '../../resources/index.ts'
import { anchorAuthSection } from './file-paths.ts'
import { equivalentRules } from '../cedar/authz-config.ts'
import { referencedCallers, type ManifestCallers, type PolicySource } from '../workloads/manifest-callers.ts'
import { type Workload } from '../workloads/workload.ts'
import { unresolvedReference } from '../documents/cross-check.ts'
import type { Loaded, LocatedOidcConfig } from '../documents/loaded.ts'
import type { Located, Problem } from '../documents/problem.ts'
import { providerHttp } from '../documents/warnings.ts'

/** Other definitions of callers, which replace those of a manifest. */
export interface CallersElsewhere {
  /** `--callers` is set; it overrides every manifest. */
  readonly option: boolean
  /** `--ignore-manifest-callers`. */
  readonly ignored: boolean
  /** The pods belong to an operator, without options. */
  readonly inCluster: boolean
  /** `file:line` of a ProxyConfig with callers for routes without a section of their own. */
  readonly proxy: string | undefined
}

/** The callers of the routes of a manifest. */
export interface FoundCallers {
  /** Undefined if the manifest does not define them, or something else does. */
  readonly section: AuthSection | undefined
  /** Their definition is invalid, which has been reported. */
  readonly isInvalid: boolean
}
const NOT_SAID: FoundCallers = { section: undefined, isInvalid: false }

interface Findings {
  readonly problems: Problem[]
  readonly warnings: Problem[]
}

/**
 * The section of a manifest for its routes, with absolute paths: a key of a Secret or ConfigMap is the file
 * `<secretsDirectory>/<name>/<key>`. No restriction on callers is dropped silently (decisions §1): an unsupported one
 * is a problem that names the alternatives, or a warning if one of them is used.
 */
export function callersOfManifest(
  manifest: Located<Workload>,
  loaded: Loaded,
  elsewhere: CallersElsewhere,
  secretsDirectory: string,
  { problems, warnings }: Findings,
): FoundCallers {
  const { callers } = manifest.document
  if (callers === undefined) return NOT_SAID
  const { section, reference, path: at, unsupported } = callers
  const instead = elsewhere.option
    ? '--callers defines the callers'
    : elsewhere.ignored
      ? '--ignore-manifest-callers is given'
      : elsewhere.proxy === undefined
        ? undefined
        : `callers are those of the ProxyConfig at ${elsewhere.proxy}`
  const waysOut = elsewhere.inCluster ? WITHOUT_IT : WAYS_OUT
  for (const { path: field, reason, policies } of unsupported) {
    const { namespace } = manifest.document.metadata
    const rules = policies === undefined ? '' : `; ${rulesFor(policies, namespace, loaded)}`
    const message = `defines callers and ${reason}${rules}`
    if (instead === undefined) problems.push(manifest.problem(field, `${message}; ${waysOut}`, { at: 'key' }))
    else warnings.push(manifest.problem(field, `${message}; ${instead}`, { at: 'key' }))
  }
  if ((section === undefined && reference === undefined) || manifest.document.backends.length === 0) return NOT_SAID
  if (elsewhere.option || elsewhere.ignored) {
    warnings.push(manifest.problem(at, `not honoured: ${instead}`, { at: 'key' }))
    return NOT_SAID
  }
  if (section === undefined) {
    const found = referencedConfig(manifest, callers, loaded, problems)
    if (found === undefined) return { section: undefined, isInvalid: true }
    const referenced = withFiles(referencedCallers(found.reference, found.config.document), secretsDirectory)
    return { section: anchorAuthSection(referenced, found.config.file), isInvalid: false }
  }
  const found = withFiles(section, secretsDirectory)
  findHttp(manifest, callers, found, { problems, warnings })
  return { section: anchorAuthSection(found, manifest.file), isInvalid: false }
}

/** The rules that decide as the policies do; if their object was not loaded, the command that prints them. */
function rulesFor(source: PolicySource, namespace: string, { policies }: Loaded): string {
  if (source.kind === undefined) return equivalentRules(source.found)
  const { kind, name, key } = source
  const set = policies.find(
    ({ document: one }) =>
      one.kind === kind && one.name === name && one.namespace === namespace && (key ?? 'spec') === one.path.at(-1),
  )
  if (set !== undefined) return equivalentRules(set.document.found)
  const shown = /^[a-z0-9][a-z0-9.-]{0,252}$/.test(name) ? name : 'NAME'
  return `"kubectl get ${kind.toLowerCase()} ${shown} -o yaml | extauth convert cedar -" prints the equivalent "authorization" of a route`
}

/** The referenced MCPOIDCConfig; undefined without one, or if it has problems. */
function referencedConfig(
  manifest: Located<Workload>,
  { reference, path }: ManifestCallers,
  { oidcConfigs, declared }: Loaded,
  problems: Problem[],
): { readonly reference: NonNullable<ManifestCallers['reference']>; readonly config: LocatedOidcConfig } | undefined {
  if (reference === undefined) return undefined
  const { namespace } = manifest.document.metadata
  const { name } = reference
  const isIt = (one: { readonly name: string; readonly namespace: string }): boolean =>
    one.name === name && one.namespace === namespace
  const config = oidcConfigs.find(({ document: { metadata } }) => isIt(metadata))
  if (config !== undefined) return { reference, config }
  const kind = 'MCPOIDCConfig'
  // Problems of an existing one have been reported.
  if (!declared.some((one) => one.kind === kind && isIt(one)))
    problems.push(manifest.problem([...path, 'name'], unresolvedReference(declared, { kind, namespace, name })))
  return undefined
}

const WAYS_OUT =
  'expected --callers FILE, a ProxyConfig with "auth" among the files, or --ignore-manifest-callers to serve without it'

const WITHOUT_IT = 'remove the field to serve without it'

/** The section with the files for its keys of Secrets and ConfigMaps, below the secrets directory. */
export function withFiles(section: ManifestSection, directory: string): AuthSection {
  if (section.mode === 'anonymous') return section
  const providers = section.oauth.providers.map((provider) => withFilesOf(provider, directory))
  return { mode: 'oauth', oauth: { ...section.oauth, providers } }
}

function withFilesOf({ clientSecretRef, caBundleRef, ...provider }: ManifestProvider, directory: string): Provider {
  const files: Partial<Provider> = {}
  if (clientSecretRef !== undefined)
    files.clientSecretFile = path.join(directory, clientSecretRef.name, clientSecretRef.key)
  if (caBundleRef !== undefined) files.caCertPath = fileOfBundle(caBundleRef, directory)
  return { ...provider, ...files }
}

/** The file of a CA bundle, in the secrets directory. The schema guarantees that it references one. */
export function fileOfBundle({ configMapRef, secretRef }: CaBundleRef, directory: string): string {
  const { name, key } = configMapRef ?? secretRef ?? { name: '', key: '' }
  return path.join(directory, name, key)
}

/** Plain-http provider URLs, rejected or with a warning (decisions §2.6). */
function findHttp(
  manifest: Located<Workload>,
  callers: ManifestCallers,
  section: AuthSection,
  findings: Findings,
): void {
  if (section.mode === 'anonymous') return
  for (const [index, provider] of section.oauth.providers.entries()) {
    const found = providerHttp(manifest, provider, (field) => callers.urlPath(index, field))
    findings.problems.push(...found.refused)
    findings.warnings.push(...found.warnings)
  }
}
