'use strict'
// Runs at the end of `npm ci`, in whatever Node is there: makes dist/, from which a checkout starts in half the time, its
// edited sources aside. Where it can't be made (no development dependencies, an old Node) the sources run.
var spawnSync = require('child_process').spawnSync
var path = require('path')
var version = require('./node-version.cjs')

function hasBundler() {
  try {
    require.resolve('rolldown/package.json')
    return true
  } catch (error) {
    return false
  }
}

var node = version.isNewEnough() ? process.execPath : version.broughtNode()
if (node !== undefined && hasBundler()) {
  var build = path.join(__dirname, '..', 'scripts', 'build.ts')
  if (spawnSync(node, [build], { stdio: 'inherit' }).status !== 0)
    console.error('mcp-extauth: dist/ was not made; the sources run instead.')
}
