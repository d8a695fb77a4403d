# frozen_string_literal: true

# bin/hold's command line.

require "optparse"
require_relative "run"

addresses = [1, 50]
samples = 20
OptionParser.new do |options|
  options.banner = "Usage: bin/hold [options] [resources]"
  options.separator "Fills each resource of a server, and prints what another client sees: the slowest of its"
  options.separator "requests on an idle server, at three quarters of the bound, at the bound, and after the release."
  options.separator "Resources:"
  options.separator "  #{Hold::Resource.all.map(&:label).join(" ")}"
  options.on("--addresses N,N", Array, "how many the clients come from (1,50)") { |list| addresses = list.map(&:to_i) }
  options.on("--samples N", Integer, "requests of the other client in each phase (#{samples})") { |n| samples = n }
end.parse!

known = Hold::Resource.all.to_h { |resource| [resource.label, resource] }
names = ARGV.empty? ? known.keys : ARGV
unknown = names - known.keys
abort "bin/hold: there is no resource #{unknown.first} (known: #{known.keys.join(", ")})" if unknown.any?
puts Hold::HEAD
results = names.product(addresses).map do |name, count|
  Hold::Trial.new(known[name], count, samples:).run.tap do |result|
    puts result
    $stdout.flush
  end
end
exit results.all? { |result| result.quick? && result.released? }
