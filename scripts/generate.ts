import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { renderCrd } from '../src/cli/schema.ts'
import { FAILURES, type Fault, type FailureRow } from '../src/core/index.ts'
import { format, resolveConfig } from 'prettier'
import { stringify } from 'yaml'
import { mutatingConfiguration, NAMES, ownTypes, podKeys, validatingConfiguration } from '../src/operator/index.ts'
import { combinedSchema, type CrdKind, CRD_KINDS } from '../src/load/publish/index.ts'
import { DEFAULT_API_GROUP } from '../src/load/index.ts'
import { CHART, chartTemplates, DEFINITIONS } from './chart.ts'
import { withChartValues } from './chart-values.ts'
import { PROTOCOL, protocolModule } from './protocol-module.ts'
import { cliPage } from './cli-page.ts'
import { manifestsPage } from './manifests-page.ts'
import { referencePage } from './reference-page.ts'

// Writes what derives from the schemas and from the error table; with --check it compares, names what differs and fails.
const root = path.join(import.meta.dirname, '..')
const GENERATED = 'config/generated'

const OPERATOR = 'config/deploy/operator'
const plurals = ownTypes(DEFAULT_API_GROUP)

const files = new Map<string, string>([
  // For editors; `extauth schema` prints each schema for people.
  [`${GENERATED}/extauth.schema.json`, `${JSON.stringify(combinedSchema())}\n`],
  ...CRD_KINDS.map((kind) => [`${DEFINITIONS}/${crdFile(kind)}`, installedCrd(kind)] as const),
  [`${DEFINITIONS}/kustomization.yaml`, crdList()],
  [`${OPERATOR}/webhooks.yaml`, webhooks()],
  ['docs/cli.md', await cliPage()],
  ['docs/errors.md', errorsPage()],
  ['docs/reference.md', referencePage()],
  ['docs/manifests.md', manifestsPage()],
  [PROTOCOL, await protocolModule(root)],
])

stampReleases()

const manifestsIn = (folder: string): string[] =>
  namesIn(folder).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
for (const [name, text] of chartTemplates({
  list: manifestsIn,
  read: (file) => files.get(file) ?? current(file) ?? '',
}))
  files.set(name, text)

const chartFile = (name: string): string => files.get(`${CHART}/${name}`) ?? current(`${CHART}/${name}`) ?? ''
const readmePath = path.join(root, CHART, 'README.md')
const readme = withChartValues(chartFile('README.md'), chartFile('values.schema.json'), chartFile('values.yaml'))
files.set(`${CHART}/README.md`, await format(readme, { ...(await resolveConfig(readmePath)), filepath: readmePath }))

if (process.argv.includes('--check')) {
  const different = [...files].filter(([name, text]) => current(name) !== text).map(([name]) => name)
  const wrong = [...different, ...strangers()]
  for (const name of wrong) process.stderr.write(`${name} is not up to date: npm run generate\n`)
  process.exitCode = wrong.length === 0 ? 0 : 1
} else {
  for (const name of strangers()) rmSync(path.join(root, name))
  for (const [name, text] of files) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), text)
  }
  process.stdout.write(`${files.size} files written\n`)
}

/**
 * Version and image name are in package.json only: the chart, the manifests and the pages that name a release get them here.
 * Images of other registries (examples) keep their name.
 */
function stampReleases(): void {
  const about = JSON.parse(current('package.json') ?? '') as { version: string; image: string }
  const { version, image } = about
  const pages = globSync(['config/deploy/**/*.{yaml,md}', 'docs/*.md', `${CHART}/*.{yaml,md}`], { cwd: root })
  for (const name of pages) {
    const text = files.get(name) ?? current(name) ?? ''
    const stamped = text
      .replaceAll(/((?:[\w.-]+\/)*)mcp-extauth:\d+\.\d+\.\d+(?:-[\w.]+)?/g, (_, registry: string) =>
        registry === 'registry.example.com/' ? `${registry}mcp-extauth:${version}` : `${image}:${version}`,
      )
      .replaceAll(/(mcp-extauth-)\d+\.\d+\.\d+(?:-[\w.]+)?(?=\.tgz)/g, `$1${version}`)
    files.set(
      name,
      name === `${CHART}/Chart.yaml` ? stamped.replaceAll(/^((?:v|appV)ersion: ).*$/gm, `$1${version}`) : stamped,
    )
  }
}

function current(name: string): string | undefined {
  try {
    return readFileSync(path.join(root, name), 'utf8')
  } catch {
    return undefined
  }
}

/** Files that lie among the generated ones and are not. */
function strangers(): string[] {
  return [GENERATED, `${CHART}/templates`, DEFINITIONS].flatMap((folder) =>
    namesIn(folder)
      .filter((name) => name.includes('.'))
      .map((name) => `${folder}/${name}`)
      .filter((name) => name !== `${CHART}/templates/NOTES.txt`)
      .filter((name) => !files.has(name)),
  )
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(path.join(root, folder))
  } catch {
    return []
  }
}

function errorsPage(): string {
  const faults: Record<Fault, string> = {
    caller_token: "the caller's token",
    caller_rights: "the caller's permissions",
    request: 'the request',
    configuration: 'the configuration',
    identity_provider: 'the identity provider, token endpoint or STS',
    backend: 'the backend',
    proxy: 'the proxy',
  }
  const rows: [string, FailureRow][] = Object.entries(FAILURES)
  const sections = (Object.keys(faults) as Fault[]).map((fault) => {
    const lines = rows
      .filter(([, row]) => row.fault === fault)
      .map(
        ([code, row]) =>
          `| \`${code}\` | ${row.status} | ${row.retryable ? 'yes' : 'no'} | ${cell(row.sentence)} | ${cell(row.remedy)} |`,
      )
    return `## Fault of ${faults[fault]}\n\n| reason | status | retry may help | message to the client | what to change |\n| --- | --- | --- | --- | --- |\n${lines.join('\n')}\n`
  })
  return `# Errors\n\n<!-- Generated by \`npm run generate\` from src/core/failures.ts. -->\n\nEvery failure has a stable reason. On MCP routes it is \`error.data.reason\` of a JSON-RPC error (code -32000, with the \`id\` of\nthe request if known), with \`requestId\`; in metrics it is the label \`reason\`. Messages may change, reasons do not. The\nspecific cause is \`detail\` of the log line, and is shown by the inspector and by \`extauth check\`. First steps:\n[Troubleshoot](troubleshoot.md).\n\n${sections.join('\n')}`
}

function crdFile(kind: CrdKind): string {
  return `${DEFAULT_API_GROUP}_${plurals[kind].plural}.yaml`
}

/** A definition as it is installed: found by its label, and kept when a Helm chart that brought it is uninstalled. */
function installedCrd(kind: CrdKind): string {
  const name = `${plurals[kind].plural}.${DEFAULT_API_GROUP}`
  const labels = 'labels:\n    app.kubernetes.io/name: mcp-extauth'
  const annotations = 'annotations:\n    helm.sh/resource-policy: keep'
  return renderCrd(DEFAULT_API_GROUP, kind).replace(`name: ${name}\n`, `name: ${name}\n  ${labels}\n  ${annotations}\n`)
}

function crdList(): string {
  const resources = CRD_KINDS.map(crdFile).sort()
  return stringify({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources })
}

/** Without a CA: the operator puts it in. */
function webhooks(): string {
  const options = {
    name: NAMES.webhooks,
    types: plurals,
    keys: podKeys(DEFAULT_API_GROUP),
    target: { service: { namespace: 'extauth-system', name: 'extauth-operator', port: 443 } },
    caBundle: '',
    ownNamespace: 'extauth-system',
  }
  const documents = [validatingConfiguration(options), mutatingConfiguration(options)]
  return documents.map((document) => stringify(document, { lineWidth: 0 })).join('---\n')
}

/** Text that can not end its cell. */
function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`)
}
