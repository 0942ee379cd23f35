'use strict'
// Written for any Node, old ones included: it has to run there to say what is wrong, or to start another.
var fs = require('fs')
var path = require('path')

var WANTED = [24, 12]

/** Whether this Node runs the program. */
exports.isNewEnough = function () {
  var found = process.versions.node.split('.').map(Number)
  return found[0] > WANTED[0] || (found[0] === WANTED[0] && found[1] >= WANTED[1])
}

/** The Node that was installed beside this package (an optional dependency, Linux only), or undefined. */
exports.broughtNode = function () {
  try {
    var manifest = require.resolve('node-' + process.platform + '-' + process.arch + '/package.json')
    var node = path.join(path.dirname(manifest), 'bin', 'node')
    return fs.existsSync(node) ? node : undefined
  } catch (error) {
    return undefined
  }
}

exports.sentence =
  'mcp-extauth needs Node ' +
  WANTED.join('.') +
  ' or newer; this is ' +
  process.version +
  '. Its package brings Node 24 on Linux x64 and arm64, unless optional dependencies were left out; elsewhere install Node 24.'
