'use strict'
var fs = require('fs')

/** What of a file is written down: its size, its time, and the sum of its content. */
exports.whatIs = function (file) {
  var now = fs.statSync(file)
  return [now.size, now.mtimeMs, sumOf(file)]
}

/**
 * Whether dist/ below `root` was made of the sources as they are now (scripts/build.ts writes them down). A copy of a checkout, or
 * a branch that was left and come back to, has other times and the same content.
 */
exports.isMadeOfThese = function (root) {
  try {
    var files = JSON.parse(fs.readFileSync(root + '/dist/sources.json', 'utf8'))
    return Object.keys(files).every(function (name) {
      var file = root + '/' + name
      var made = files[name]
      var now = fs.statSync(file)
      return now.size === made[0] && (now.mtimeMs === made[1] || sumOf(file) === made[2])
    })
  } catch (error) {
    return false
  }
}

function sumOf(file) {
  return require('crypto').createHash('sha256').update(fs.readFileSync(file)).digest('base64')
}
