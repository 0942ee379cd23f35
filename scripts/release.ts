import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

// Makes what a release consists of, in release/: the package, what it is made of (CycloneDX), and SHA-256 of both.
const root = path.join(import.meta.dirname, '..')
const out = path.join(root, 'release')

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}

rmSync(out, { recursive: true, force: true })
mkdirSync(out)
run(process.execPath, [path.join(root, 'scripts/build.ts')])
run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', out])
const [tarball = ''] = readdirSync(out)
const sbom = run('npm', ['sbom', '--omit', 'dev', '--sbom-format', 'cyclonedx', '--package-lock-only'])
const bom = JSON.parse(sbom) as { metadata: { component: { name: string } } }
// npm names it after the folder.
bom.metadata.component.name = (
  JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { name: string }
).name
writeFileSync(path.join(out, tarball.replace(/\.tgz$/, '.cdx.json')), `${JSON.stringify(bom, null, 2)}\n`)
const sums = readdirSync(out).map((name) => {
  const digest = createHash('sha256')
    .update(readFileSync(path.join(out, name)))
    .digest('hex')
  return `${digest}  ${name}\n`
})
writeFileSync(path.join(out, 'SHA256SUMS'), sums.join(''))
process.stdout.write(`release/:\n${sums.join('')}`)
