# frozen_string_literal: true

require "rbconfig"

module Heddle
  module CLI
    class Demo
      # A body that lets a {Crowd} loose on this server and hands on what it tells.
      class Burst
        # What a process of the crowd runs, on the same code as this one.
        SCRIPT = "require 'heddle/cli/demo'; Heddle::CLI::Demo::Crowd.main(ARGV)"
        private_constant :SCRIPT

        # @param arguments [Array<#to_s>] of {Crowd.main}
        # @param stopping [#call] whether the server stops, and the crowd with it
        def initialize(*arguments, stopping:)
          @arguments = arguments.map(&:to_s)
          @stopping = stopping
        end

        # The crowd goes when its standard input ends: with this answer, or with this process, however it ends.
        #
        # @yieldparam line [String] JSON
        def each
          IO.popen(command, "r+") do |crowd|
            crowd.each_line do |line|
              yield line
              break if @stopping.call
            end
          end
        end

        private

        def command
          [RbConfig.ruby, "-I#{$LOAD_PATH.join(File::PATH_SEPARATOR)}", "-W0", "-e", SCRIPT, *@arguments]
        end
      end
    end
  end
end
