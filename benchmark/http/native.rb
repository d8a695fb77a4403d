# frozen_string_literal: true

require "fileutils"
require "open3"

module Bench
  module HTTP
    # The programs and libraries in C beside this file, compiled when they are first asked for.
    module Native
      SOURCE = File.expand_path("native", __dir__)
      TARGET = File.join(ROOT, "tmp", "bench")
      FLAGS = %w[-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra].freeze
      PROGRAMS = { "steady" => %w[steady.c client.c], "holder" => %w[holder.c client.c],
                   "paced" => %w[paced.c client.c], "sockets" => %w[sockets.c client.c],
                   "sender" => %w[sender.c listener.c], "delayed" => %w[delayed.c listener.c],
                   "fanout" => %w[fanout.c listener.c], "work.so" => %w[work.c] }.freeze
      SHARED = %w[-shared -fPIC].freeze

      module_function

      # @param name [String]
      # @return [String] the program's path
      # @raise [Child::Failed] with the compiler's words
      def program(name)
        target = File.join(TARGET, name)
        sources = PROGRAMS.fetch(name).map { |file| File.join(SOURCE, file) }
        return target if current?(target)

        FileUtils.mkdir_p(TARGET)
        fresh = "#{target}.#{Process.pid}"
        shared = name.end_with?(".so") ? SHARED : []
        words, status = Open3.capture2e(*ENV.fetch("CC", "cc").split, *FLAGS, *shared, "-o", fresh, *sources, "-lm")
        raise Child::Failed, "#{sources.first}: #{LastWords.of(words)}" unless status.success?

        File.rename(fresh, target)
        target
      rescue Errno::ENOENT
        raise Child::Failed, "there is no C compiler for #{name}.c"
      end

      def current?(target)
        File.exist?(target) && Dir[File.join(SOURCE, "*")].all? { |path| File.mtime(path) < File.mtime(target) }
      end
      private_class_method :current?

      # Runs a program that says lines of JSON.
      #
      # @yieldparam said [#call] gives its next line as a Hash
      # @yieldparam input [IO] its standard input
      # @raise [Child::Failed] when it does not end well
      def run(name, *arguments, &) = converse(program(name), *arguments.map(&:to_s), &)

      # The same with any command.
      #
      # @see run
      def converse(*command)
        Open3.popen2(*command) do |input, output, thread|
          said = lambda do
            line = output.gets or raise Child::Failed, "#{File.basename(command.first)} ended early (#{thread.value})"
            JSON.parse(line, symbolize_names: true)
          end
          yield said, input
        ensure
          # One that is left waiting ends with its input.
          input.close unless input.closed?
        end
      end
    end
  end
end
