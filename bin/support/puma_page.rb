# frozen_string_literal: true

require_relative "options_page"
require "heddle/cli"
require "yaml"

module Heddle
  # The guide for users of Puma. Its tables come from the data of `heddle init --from`.
  module PumaPage
    PATH = File.expand_path("../../docs/from_puma.md", __dir__)
    # What the run of Puma's own tests has shown.
    DIFFERENCES = File.expand_path("../../test/trials/puma/differences.yml", __dir__)

    INTRODUCTION = <<~TEXT
      # From Puma

          bundle add heddle
          RAILS_ENV=production bundle exec heddle init --apply
          bundle install
          bundle exec heddle check --changed
          bin/rails server

      1. `heddle init --apply` changes the [files that start the server](rails.md#files-that-start-the-server), and
         translates Puma's configuration to `config/heddle.rb`. For each line of Puma's file it reports, with the line's
         number, whether it is translated, not needed, or not translated, and why. `heddle init --from config/puma.rb`
         only translates.
      2. `heddle check --changed` prints the options that are set, and where each was set.
      3. `bin/rails server`, `heddle serve` or `rackup -s heddle` starts the server.

      `heddle init --undo` restores each byte, and Puma serves again.

      [Signals](processes.md#signals) compares the signals of both servers. [From Falcon](async.md#from-falcon) is the guide
      for users of Falcon and falcon-rails.

      ## Translation

      `heddle init` runs Puma's file in the current environment, so set the variables of production. It loads neither Puma
      nor the application; it reports and skips a line that loads the application. If a line can't be run, `init` says so,
      writes nothing and exits with a status other than 0. With `--force` it writes the rest, below a comment with the
      missing lines.

      Code that ran in two threads or more runs in mode fiber: each process runs many requests concurrently, and a waiting
      request occupies no thread. `threads 1` becomes `max_requests 1`, because such code never had to be thread-safe: raise
      it only after an audit. If a gem does not work in fibers, `mode :thread` gives each request a thread, as under Puma,
      without most protections ([Modes](modes.md#migration-of-an-existing-application)).

      A condition on `Rails.env` or on environment variables is kept. One that needs the application can't be computed in
      `config/heddle.rb`: if it held, the line is translated without the condition, and otherwise left out. A
      line whose condition did not hold, and whose value needs a variable that was not set, is left out, too. So is a
      setting in a loop, a method or a `case`.

      Where Puma's file names a port without an address, both servers listen on localhost under `rails server` in
      development. Everywhere else they listen on every address.

      Heddle also reads `PORT`, `WEB_CONCURRENCY`, `RAILS_ENV`, `APP_ENV`, `RACK_ENV` and `PIDFILE`; in mode thread
      `RAILS_MAX_THREADS`, too.

      ## Commands

      | Puma | Heddle |
      | - | - |
      | `puma`, `puma -C config/puma.rb` | `heddle serve` |
      | `pumactl status`, `stats`, `thread-backtraces` | `heddle status`, `heddle top`, `heddle status --tasks` |
      | `pumactl stop`, `halt` | `heddle stop`, `heddle stop --now` |
      | `pumactl restart`, USR2 | `heddle restart`, USR2 |
      | `pumactl phased-restart`, USR1 | `heddle reload`, USR1, HUP |
      | `rails restart`, `touch tmp/restart.txt` | the same, with workers |

      ## Both servers in one folder

          heddle serve --control unix:tmp/heddle-2.sock

      A second Heddle in the same folder needs a control socket of its own. To run Puma beside Heddle, remove
      `plugin :tmp_restart` from Puma's configuration: Heddle watches `tmp/restart.txt`, too, and reloads.

      ## Exceptions of the application

      As under Puma, any exception is logged and answered with 500, whether it is a StandardError or not. That includes
      exceptions of a streamed body before its first part. If the body fails after its first part, the client sees that the
      response is incomplete. The same is true if the body has waited or was preempted before its first part, because Heddle
      has then sent the head; Puma has not.

      `exit`, `abort` and a SignalException such as Interrupt differ. Puma answers these with 500, too. Under Heddle they
      end the process, as in any Ruby program: the worker's other requests are cut off, and the master starts a new worker.

      In development `heddle serve` puts `Rack::ShowExceptions` and `Rack::Lint` around an application without Rails, as
      `rackup` does. Unlike under `rackup`, `rack.input` keeps all its methods. In any other environment, such as `-e none`,
      and in mode ractor, Heddle adds neither of them. Rails shows its own error pages.

      ## Settings

      | Puma | Heddle |
      | - | - |
    TEXT

    BEHAVIOR = <<~TEXT
      ## Behavior

      Puma's own tests that use a socket also run with Heddle behind `Puma::Server`:

          test/trials/puma/run --modes fiber,thread FOLDER    # a checkout of github.com/puma/puma

      Of %<tests>d tests, %<different>d fail, and %<internal>d of these look at objects of Puma's own. Each of the others
      belongs to a row of the table below. A failing test without a row fails the run.

      | what | Puma | Heddle | verdict | because |
      | - | - | - | - | - |
    TEXT

    # @return [String] the page
    def self.text
      words = CLI::InitCommand::PumaSettings
      rows = [words::OPTIONS.map { |word, option| [word, "`#{option}`"] },
              words::HOOKS.map { |word, hook| [word, "`#{hook} { … }`"] },
              words::TRANSLATED.to_a,
              words::PLUGINS.map { |name, why| ["plugin :#{name}", "not needed: #{why}"] },
              [["plugin :solid_queue", "`solid_queue true`; `SOLID_QUEUE_IN_PUMA` sets it, too"]],
              words::NEEDLESS.map { |word, why| [word, "not needed: #{why}"] },
              words::UNTRANSLATED.map { |word, why| [word, "#{need_of(word)}: #{why}"] }]
      [INTRODUCTION.chomp, *rows.flatten(1).map { |word, text| "| `#{word}` | #{text} |" }, "", behavior].join("\n")
    end

    # @param word [Symbol] a setting without an equivalent
    # @return [String]
    def self.need_of(word)
      values = CLI::InitCommand::PumaSettings::NEEDLESS_VALUES
      values.key?(word) ? "not needed with `#{values[word].inspect}`, else no equivalent" : "no equivalent"
    end

    # @return [String]
    def self.behavior
      found = YAML.load_file(DIFFERENCES)
      rows = found.fetch("rows")
      tests = rows.group_by { |row| row["what"].nil? }
                  .transform_values { |group| group.sum { |row| row["tests"].to_a.size } }
      words = format(BEHAVIOR, tests: found.fetch("tests"), different: tests.values.sum, internal: tests.fetch(true))
      cells = rows.filter_map { |row| row.values_at(*%w[what puma heddle verdict because]) if row["what"] }
      [words.chomp, *cells.map { |row| "| #{row.join(" | ")} |" }, ""].join("\n")
    end
  end
end
