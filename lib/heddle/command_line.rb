# frozen_string_literal: true

require "rbconfig"

module Heddle
  # The command line that started this program.
  module CommandLine
    # @param path [String] the file with the command line; a parameter for tests
    # @param program [Array<String>] the program and its arguments
    # @return [Array<String>] Ruby, its options, the program and its arguments. Ruby's options are missing if the file
    #   does not exist, or if a process title has replaced the command line in it; `bundle exec` sets such a title
    def self.read(path = "/proc/self/cmdline", program: [$PROGRAM_NAME, *ARGV])
      typed = File.binread(path).split("\0", -1)[..-2] # an argument may contain any bytes
      typed.size > program.size && typed.last(program.size) == program.map(&:b) ? typed : [RbConfig.ruby, *program]
    rescue SystemCallError
      [RbConfig.ruby, *program]
    end
  end
end
