import { spawnSync } from 'node:child_process'
import path from 'node:path'

// Checks and tests the alerting rules with Prometheus' own tool. Without it this fails: a check that is left out is none.
const folder = path.join(import.meta.dirname, '../config/observability')

const run = (program: string, ...args: string[]): boolean => {
  const { status } = spawnSync(program, args, { cwd: folder, stdio: 'inherit' })
  return status === 0
}
const isThere = (): boolean => spawnSync('promtool', ['--version']).status === 0

if (!isThere() && process.getuid?.() === 0) {
  process.stdout.write('promtool is missing; installing the package prometheus\n')
  run('apt-get', 'update')
  run('apt-get', 'install', '-y', '--no-install-recommends', 'prometheus')
}
if (!isThere()) {
  process.stderr.write('promtool is missing. Install it: apt-get install prometheus, or from prometheus.io\n')
  process.exitCode = 1
} else if (!run('promtool', 'check', 'rules', 'alerts.yaml') || !run('promtool', 'test', 'rules', 'alerts.test.yaml')) {
  process.exitCode = 1
}
