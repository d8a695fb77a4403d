# frozen_string_literal: true

require_relative "options_page"
require "heddle/cli"

module Heddle
  # The guide for those who come from Puma; its tables are made of what `heddle init --from` knows.
  module PumaPage
    PATH = File.expand_path("../../docs/from_puma.md", __dir__)

    INTRODUCTION = <<~TEXT
      # Coming from Puma

      1. In the Gemfile, `gem "heddle"` takes the place of `gem "puma"`.
      2. `heddle init --from config/puma.rb` writes `config/heddle.rb` and answers for every line of Puma's file: carried
         over, needless, or left out, with its number and the reason.
      3. `heddle check --changed` prints what differs from the defaults, and where it was said.
      4. `bin/rails server`, `heddle serve` or `rackup -s heddle` starts it. [Rails](rails.md#files-that-start-the-server)
         lists the files that start a server.

      Puma's file is run in the environment that is there, so set what production sets (`RAILS_ENV=production heddle init
      --from config/puma.rb`). Neither Puma nor the application is loaded: a line that loads the application is named and
      passed over. When a line can't be run, `init` says so, writes nothing and ends with a status that is not 0. With
      `--force` it writes the rest, under a comment that lists what is missing. Heddle reads
      `PORT`, `WEB_CONCURRENCY`, `RAILS_MAX_THREADS`, `RAILS_ENV`, `RACK_ENV` and `PIDFILE`, too.

      To compare two servers in one folder, give the second one a control socket of its own
      (`heddle serve --control unix:tmp/heddle-2.sock`). Leave `plugin :tmp_restart` out of Puma's configuration: Heddle
      watches `tmp/restart.txt`, too, and reloads.

      The translated lines do what they did under Puma: `mode :thread`, one request a thread. When that works, remove `mode` and
      `threads`: each process then runs many requests at once, in fibers, and a request that waits costs no thread.

      Signals and their effects, beside Puma's, are in [Processes](processes.md#signals).

      ## What stands for what

      | Puma | Heddle |
      | - | - |
    TEXT

    # @return [String] the page
    def self.text
      words = CLI::InitCommand::PumaWords
      rows = [words::OPTIONS.map { |word, option| [word, "`#{option}`"] },
              words::HOOKS.map { |word, hook| [word, "`#{hook} { … }`"] },
              words::TRANSLATED.to_a,
              words::PLUGINS.map { |name, why| ["plugin :#{name}", "nothing: #{why}"] },
              [["plugin :solid_queue", "`worker_boot { … }` and `worker_stop { … }`, see below"]],
              words::NEEDLESS.map { |word, why| [word, "nothing: #{why}"] },
              words::LEFT.map { |word, why| [word, "no equal: #{why}"] }]
      [INTRODUCTION.chomp, *rows.flatten(1).map { |word, what| "| `#{word}` | #{what} |" }, jobs].join("\n")
    end

    def self.jobs
      <<~TEXT

        ## Solid Queue in the server's processes

        Puma's `plugin :solid_queue` becomes two lines of `config/heddle.rb`:

        ```ruby
        #{CLI::InitCommand::PumaWords::SOLID_QUEUE.join("\n")}
        ```

        #{CLI::InitCommand::PumaWords::SOLID_QUEUE_REMARK}
      TEXT
    end
    private_class_method :jobs
  end
end
