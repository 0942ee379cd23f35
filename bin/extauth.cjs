#!/usr/bin/env node
'use strict'
// SIGUSR1 would open Node's debugger, which asks for no password.
process.on('SIGUSR1', function () {})
var version = require('./node-version.cjs')
/** Says to a process that it was started by an older Node. */
var OUTER = 'MCP_EXTAUTH_OUTER'
var brought = version.isNewEnough() ? undefined : version.broughtNode()
if (version.isNewEnough()) start()
else if (brought !== undefined) startWith(brought)
else {
  console.error(version.sentence)
  process.exit(2)
}

function start() {
  if (process.env[OUTER] !== undefined) endWithOuter()
  // Asked in health checks and scripts, and answered without loading the program: the same line as its own (src/compose/version.ts).
  if (process.argv.length === 3 && /^(version|--version)$/.test(process.argv[2])) {
    var about = require('../package.json')
    process.stdout.write(about.name + ' ' + about.version + ' (Node ' + process.versions.node + ')\n')
    return
  }
  var fs = require('node:fs')
  var path = require('node:path')
  // What Node has compiled once (and stripped of types) is kept for the next start: half the time, 30 MiB less. Beside the
  // code, where nobody else may write; where we may not either, nothing is kept.
  require('node:module').enableCompileCache(path.join(__dirname, '..', 'node_modules', '.cache', 'extauth'))
  // An installed package has only dist/: Node strips no types below node_modules. A checkout runs its dist/ while that was
  // built from exactly its sources, otherwise the sources themselves.
  var root = path.join(__dirname, '..')
  var source = path.join(root, 'src', 'main.ts')
  if (!fs.existsSync(source) || require('./built.cjs').isFresh(root)) require('../dist/main.cjs')
  else import(require('node:url').pathToFileURL(source).href)
}

/** Stops in good order when the process that started this one has gone; what this one starts is no concern of that. */
function endWithOuter() {
  delete process.env[OUTER]
  if (process.channel === undefined) return
  process.once('disconnect', function () {
    process.kill(process.pid, 'SIGTERM')
  })
  process.channel.unref()
}

/** Runs this file under another Node, as if it were this process: the same streams, signals and end. */
function startWith(node) {
  var env = Object.assign({}, process.env)
  env[OUTER] = String(process.pid)
  // By the end of the channel the child notices that this process was killed.
  var options = { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env: env }
  var child = require('child_process').spawn(
    node,
    ['--disable-sigusr1', __filename].concat(process.argv.slice(2)),
    options,
  )
  // Ctrl-C goes to both from the terminal; so soon after each other, two are one (src/compose/io.ts).
  ;['SIGTERM', 'SIGINT', 'SIGHUP'].forEach(function (signal) {
    process.on(signal, function () {
      child.kill(signal)
    })
  })
  child.on('error', function () {
    console.error(version.sentence)
    process.exit(2)
  })
  child.on('exit', function (code, signal) {
    if (signal === null) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
