import path from 'node:path'
import { getAsset } from 'node:sea'
import { compileFunction } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

// The main script of the single executable, and of its threads: runs modules that are assets of it, named as in a package.

interface Module {
  exports: unknown
}
const modules = new Map<string, Module>()
const root = path.dirname(process.execPath)

function load(name: string): unknown {
  const known = modules.get(name)
  if (known !== undefined) return known.exports
  const module: Module = { exports: {} }
  modules.set(name, module)
  const folder = path.posix.dirname(name)
  const filename = path.join(root, name)
  const parameters = ['exports', 'require', 'module', '__filename', '__dirname']
  const run = compileFunction(getAsset(name, 'utf8'), parameters, { filename })
  const require = (specifier: string): unknown =>
    specifier.startsWith('.') ? load(path.posix.join(folder, specifier)) : builtin(specifier)
  run.call(module.exports, module.exports, require, module, filename, path.dirname(filename))
  return module.exports
}

/** Only modules of Node: files beside the executable are never run. */
function builtin(specifier: string): unknown {
  const module: unknown = process.getBuiltinModule(specifier)
  if (module === undefined)
    throw Object.assign(new Error(`Cannot find module '${specifier}'`), { code: 'MODULE_NOT_FOUND' })
  return module
}

load(isMainThread ? 'dist/main.cjs' : (process.argv.at(-1) ?? ''))
