import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseReliedOn } from '../test/support/relied-on.ts'

// Runs the tests of docs/engineering/relied-on.md against the newest minor versions of the packages that it names, in a copy of the
// commit. Exit code 1 when one fails: internals that the project relies on have changed.
const root = path.join(import.meta.dirname, '..')
const rows = parseReliedOn(readFileSync(path.join(root, 'docs/engineering/relied-on.md'), 'utf8'))
const { dependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>
}
const packages = [...new Set(rows.map(({ name }) => name))].filter((name) => name in dependencies)
const copy = mkdtempSync(path.join(tmpdir(), 'extauth-next-'))
const run = (command: string, ...args: string[]): number =>
  spawnSync(command, args, { cwd: copy, stdio: 'inherit' }).status ?? 1
try {
  execFileSync('sh', ['-c', `git archive HEAD | tar -x -C '${copy}'`], { cwd: root })
  const wanted = packages.map((name) => `${name}@^${dependencies[name]}`)
  process.stdout.write(`newest of: ${wanted.join(' ')}\n`)
  if (run('npm', 'install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error', ...wanted) !== 0)
    throw new Error('the newest versions cannot be installed')
  for (const name of packages) {
    const manifest = path.join(copy, 'node_modules', name, 'package.json')
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string }
    process.stdout.write(`${name}: ${dependencies[name]} here, ${version} tried\n`)
  }
  process.exitCode = run('npx', 'vitest', 'run', ...new Set(rows.flatMap(({ tests }) => tests)))
} finally {
  rmSync(copy, { recursive: true, force: true })
}
