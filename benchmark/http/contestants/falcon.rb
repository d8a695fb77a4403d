# frozen_string_literal: true

module Bench
  module HTTP
    module Contestants
      # `falcon serve` with one worker, which its supervising process forks.
      class Falcon < Contestant
        def key = "falcon"

        def label = "Falcon"

        def settings = "one worker and its supervisor"

        def command(port, _folder, ruby_flags)
          [*executable("falcon", ruby_flags), "--quiet", "serve", "--bind", "http://127.0.0.1:#{port}", "--count", "1",
           "--config", CONFIG]
        end
      end
    end
  end
end
