# frozen_string_literal: true

# bin/bench questions [NAME…] [--quick]
#
# The experiments of docs/questions.md: each prints what it found. Without a name all of them; --quick makes them short.

require "optparse"
require_relative "questions/experiment"

quick = false
names = OptionParser.new { |words| words.on("--quick", "short ones") { quick = true } }.parse(ARGV)
known = Bench::Questions::NAMES
abort "bin/bench questions: #{(names - known).join(", ")}: there are #{known.join(", ")}" unless (names - known).empty?

(names.empty? ? known : names).each do |name|
  puts "#{name}:", Bench::Questions.find(name, quick:).map { |line| "  #{line}" }
end
