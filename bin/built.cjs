'use strict'
var fs = require('fs')

/** Size, modification time and digest of a file, as dist/sources.json lists them. */
exports.fingerprint = function (file) {
  var now = fs.statSync(file)
  return [now.size, now.mtimeMs, digest(file)]
}

/**
 * Whether dist/ below `root` was built from the sources that are there now (scripts/build.ts lists them in dist/sources.json).
 * A file with another time and the same content counts as unchanged: copies and branch switches touch times.
 */
exports.isFresh = function (root) {
  try {
    var files = JSON.parse(fs.readFileSync(root + '/dist/sources.json', 'utf8'))
    return Object.keys(files).every(function (name) {
      var file = root + '/' + name
      var built = files[name]
      var now = fs.statSync(file)
      return now.size === built[0] && (now.mtimeMs === built[1] || digest(file) === built[2])
    })
  } catch (error) {
    return false
  }
}

function digest(file) {
  return require('crypto').createHash('sha256').update(fs.readFileSync(file)).digest('base64')
}
