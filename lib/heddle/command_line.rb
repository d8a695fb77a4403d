# frozen_string_literal: true

require "rbconfig"

module Heddle
  # The command line that has started this program.
  module CommandLine
    # @param path [String] where the system reports it
    # @param program [Array<String>] the program and its arguments
    # @return [Array<String>] Ruby, its options, the program and its arguments, as they were typed; without Ruby's
    #   options where the system does not tell, or tells a text that the program has set, as `bundle exec` does
    def self.read(path = "/proc/self/cmdline", program: [$PROGRAM_NAME, *ARGV])
      typed = File.read(path).split("\0", -1)[..-2]
      typed.size > program.size && typed.last(program.size) == program ? typed : [RbConfig.ruby, *program]
    rescue SystemCallError
      [RbConfig.ruby, *program]
    end
  end
end
