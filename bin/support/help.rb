# frozen_string_literal: true

# Required by a tool before it does anything: with --help prints the comment that the tool's own file begins with, and
# ends.

if ARGV.intersect?(%w[-h --help])
  comment = File.readlines($PROGRAM_NAME).drop_while { |line| !line.match?(/\A# (?!frozen)/) }
  puts comment.take_while { |line| line.start_with?("#") }.map { |line| line.sub(/\A# ?/, "") }
  exit
end
