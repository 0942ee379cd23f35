import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { PAGE_LIBRARIES } from '../src/inspect/page-libraries.ts'
import { ARCHITECTURES, buildExecutable, nodeLicense } from './executable/build.ts'
import { type Bom, bundledIn, type Lock, releaseBom } from './sbom.ts'
import { parseArgs } from 'node:util'

const root = path.join(import.meta.dirname, '..')
const out = path.join(root, 'release')
const HELP = `npm run release -- [--check | --executable] [--help]

Writes the package, the single executables for Linux (x64, arm64), the bill of materials (CycloneDX), the licenses and
SHA-256 sums of all to release/.

  --executable  Only builds the executable for this machine, release/extauth; Linux only.

  --check       Only lists what is missing before a release can be published; exit code 1 when there is something.
`
interface About {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly homepage: string
  readonly image: string
  readonly chartRepository: string
}
const about = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as About

const { values } = parseArgs({
  options: { check: { type: 'boolean' }, executable: { type: 'boolean' }, help: { type: 'boolean' } },
})
if (values.help === true) process.stdout.write(HELP)
else if (values.check === true) check()
else if (values.executable === true) await makeExecutable()
else await make()

/** Names that only the owner of a registry and a domain can give; all of them are fields of package.json. */
function check(): void {
  const changelog = readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8')
  const bases = [...readFileSync(path.join(root, 'Dockerfile'), 'utf8').matchAll(/^FROM (\S+)/gm)].map(
    ([, name = '']) => name,
  )
  const missing = [
    ...bases
      .filter((name) => !name.includes('@sha256:'))
      .map((name) => `Dockerfile: FROM ${name} has no digest; expected ${name}@sha256:DIGEST`),
    about.private === true && 'package.json private: true; remove it to publish the package',
    about.homepage === '' && 'package.json homepage: empty; expected the URL of the project',
    !about.image.includes('/') && `package.json image: "${about.image}" has no registry; expected REGISTRY/NAME`,
    about.chartRepository === '' && 'package.json chartRepository: empty; expected oci://REGISTRY/PATH',
    !changelog.includes(`\n## ${about.version} (2`) && `CHANGELOG.md: version ${about.version} has no date`,
  ].filter((line) => line !== false)
  for (const line of missing) process.stdout.write(`${line}\n`)
  if (missing.length === 0) process.stdout.write('nothing is missing\n')
  process.exitCode = missing.length === 0 ? 0 : 1
}

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** Builds dist/ and the executable for this machine. */
async function makeExecutable(): Promise<void> {
  const architecture = ARCHITECTURES.find((name) => name === process.arch)
  if (process.platform !== 'linux' || architecture === undefined)
    throw new Error(`no executable for ${process.platform} ${process.arch}; expected Linux x64 or arm64`)
  mkdirSync(out, { recursive: true })
  run(process.execPath, [path.join(root, 'scripts/build.ts')])
  await buildExecutable(architecture, path.join(out, 'extauth'))
  process.stdout.write('release/extauth\n')
}

async function make(): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out)
  run(process.execPath, [path.join(root, 'scripts/build.ts')])
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', out])
  const [tarball = ''] = readdirSync(out)
  const readRoot = (name: string): string => readFileSync(path.join(root, name), 'utf8')
  const bundled = new Set([
    ...bundledIn(readRoot('dist/THIRD-PARTY-LICENSES')),
    ...Object.values(PAGE_LIBRARIES).map((file) => file.split('/', 1)[0] ?? ''),
  ])
  for (const architecture of ARCHITECTURES)
    await buildExecutable(architecture, path.join(out, `extauth-${about.version}-linux-${architecture}`))
  const licenses = [readRoot('LICENSE'), readRoot('dist/THIRD-PARTY-LICENSES'), nodeLicense()]
  writeFileSync(path.join(out, 'LICENSES'), licenses.join(`\n${'='.repeat(80)}\n\n`))
  const lock = JSON.parse(readRoot('package-lock.json')) as Lock
  const sbom = run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'])
  const bom = releaseBom(JSON.parse(sbom) as Bom, lock, bundled)
  // npm names it after the folder.
  bom.metadata.component.name = (JSON.parse(readRoot('package.json')) as { name: string }).name
  writeFileSync(path.join(out, tarball.replace(/\.tgz$/, '.cdx.json')), `${JSON.stringify(bom, null, 2)}\n`)
  const sums = readdirSync(out).map((name) => {
    const digest = createHash('sha256')
      .update(readFileSync(path.join(out, name)))
      .digest('hex')
    return `${digest}  ${name}\n`
  })
  writeFileSync(path.join(out, 'SHA256SUMS'), sums.join(''))
  const inDist = bom.components.filter(({ name }) => bundled.has(name)).length
  process.stdout.write(`${bom.components.length - inDist} packages are installed with it, ${inDist} are in dist/\n`)
  process.stdout.write(`release/:\n${sums.join('')}`)
}
