# frozen_string_literal: true

module Bench
  module HTTP
    module Contestants
      # `falcon serve`, whose supervising process forks the workers.
      class Falcon < Contestant
        def key = "falcon"

        def label = "Falcon"

        def settings = "#{@processes == 1 ? "one worker" : "#{@processes} workers"} and a supervisor"

        def command(port, _folder, ruby_flags)
          [*executable("falcon", ruby_flags), "--quiet", "serve", "--bind", "http://127.0.0.1:#{port}", "--count",
           @processes.to_s, "--config", @config]
        end
      end
    end
  end
end
