import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** The program as its package holds it: plain JavaScript, with the proxies beside it that it is compared with. */
export interface Installed {
  readonly launcher: string
  readonly bare: string
  readonly floor: string
  remove(): void
}

/** Builds the checkout at `root` into a folder of its own; nothing of the checkout changes. */
export function install(root: string): Installed {
  const folder = mkdtempSync(path.join(tmpdir(), 'extauth-bench-installed-'))
  const built = spawnSync(process.execPath, [path.join(root, 'scripts/build.ts'), path.join(folder, 'dist')], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (built.status !== 0) throw new Error('the program could not be built')
  cpSync(path.join(root, 'bin'), path.join(folder, 'bin'), { recursive: true })
  cpSync(path.join(root, 'package.json'), path.join(folder, 'package.json'))
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const plain = (name: string): string => {
    const file = path.join(folder, `${name}.mjs`)
    const source = path.join(import.meta.dirname, `proxies/${name}.ts`)
    writeFileSync(file, stripTypeScriptTypes(readFileSync(source, 'utf8')))
    return file
  }
  return {
    launcher: path.join(folder, 'bin/extauth.cjs'),
    bare: plain('bare'),
    floor: plain('floor'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
