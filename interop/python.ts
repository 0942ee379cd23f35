import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { SigningCase } from './vectors-cases.ts'

/** A Python with third-party packages. */
export interface Python {
  readonly executable: string
  /** Where scripts of the packages are. */
  readonly scripts: string
  close(): void
}

const INSTALL_MS = 180_000

/** Why packages of PyPI can't be had; undefined where they can. `known` is one that the index has. */
export function missingPyPI(known: string): string | undefined {
  const ask = (args: readonly string[]) => spawnSync('python3', args, { stdio: 'ignore', timeout: 60_000 }).status === 0
  if (!ask(['-c', 'import venv, ensurepip'])) return 'there is no python3 with venv and pip; in Debian: python3-venv'
  if (!ask(['-m', 'pip', '--version'])) return 'there is no pip; in Debian: python3-pip'
  const index = ['-m', 'pip', 'download', '--no-deps', '--no-binary=:none:', '--timeout', '10', '--retries', '1']
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-index-'))
  try {
    return ask([...index, '--dest', directory, known]) ? undefined : 'the package index does not answer'
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** A temporary Python environment with packages from PyPI. Throws where they can't be installed. */
export function installPython(packages: readonly string[]): Python {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-peers-'))
  const close = () => rmSync(directory, { recursive: true, force: true })
  const scripts = path.join(directory, 'bin')
  const executable = path.join(scripts, 'python')
  const steps: readonly (readonly [string, readonly string[]])[] = [
    ['python3', ['-m', 'venv', directory]],
    [executable, ['-m', 'pip', 'install', '--quiet', '--timeout', '10', '--retries', '1', ...packages]],
  ]
  for (const [command, args] of steps) {
    const { status, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: INSTALL_MS })
    if (status !== 0) {
      close()
      throw new Error(
        `${path.basename(command)} ${args.slice(0, 3).join(' ')} did not work: ${(stderr ?? '').slice(-300)}`,
      )
    }
  }
  return { executable, scripts, close }
}

/** The system's own Python where it has botocore (Debian: python3-botocore). */
export function systemPython(): Python | undefined {
  const { status } = spawnSync('python3', ['-c', 'import botocore.auth'], { stdio: 'ignore', timeout: 20_000 })
  return status === 0 ? { executable: 'python3', scripts: '', close: () => undefined } : undefined
}

/** Signatures of botocore for the same requests. Throws when it does not run. */
export function botocoreAuthorizations(
  python: Python,
  cases: readonly SigningCase[],
): { readonly version: string; readonly authorizations: readonly string[] } {
  const script = path.join(import.meta.dirname, 'vectors-sign.py')
  const { status, stdout, stderr } = spawnSync(python.executable, [script], {
    input: JSON.stringify(cases),
    encoding: 'utf8',
    timeout: 60_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) throw new Error(`botocore does not run: ${stderr.slice(-500)}`)
  return JSON.parse(stdout) as { version: string; authorizations: string[] }
}
