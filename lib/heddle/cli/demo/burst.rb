# frozen_string_literal: true

require "rbconfig"

module Heddle
  module CLI
    class Demo
      # A body that lets a process of clients loose on this server, such as a {Crowd}, and hands on what it tells.
      class Burst
        # The program of the process, which loads the same code as this one.
        SCRIPT = "require 'heddle/cli/demo'; %s.main(ARGV)"
        private_constant :SCRIPT

        # @param arguments [Array<#to_s>] of its `main`
        # @param of [Module] {Crowd} or {Bystanders}
        # @param stopping [#call] whether the server stops, and the crowd with it
        def initialize(*arguments, stopping:, of: Crowd)
          @script = format(SCRIPT, of.name)
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
          [RbConfig.ruby, "-I#{$LOAD_PATH.join(File::PATH_SEPARATOR)}", "-W0", "-e", @script, *@arguments]
        end
      end
    end
  end
end
