# frozen_string_literal: true

require_relative "../../lib/heddle/version"
$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "heddle/server"

module Heddle
  # The documentation of the options, made of their definitions.
  module OptionsPage
    PATH = File.expand_path("../../docs/options.md", __dir__)

    INTRODUCTION = <<~TEXT
      # Options

      Heddle takes the value of an option from the first of these sources that has it:

      1. a flag: `heddle serve --stop-timeout 20`
      2. an environment variable: `HEDDLE_STOP_TIMEOUT=20`
      3. the configuration file: `stop_timeout 20`
      4. the default

      `heddle check` validates the options, the addresses and the application's file. It prints the values in effect and where
      each was set. With `--load` it also loads the application. The exit status is 1 when something is wrong.
      `heddle help stop_timeout` prints what this page says about one option. `heddle serve` takes every flag.
      `rackup -s heddle` and `rails server` read the same variables and the same file. `rackup` takes an option by
      `-O stop_timeout=20`. It serves with one process, because it loads the application before a worker starts.

      ## The configuration file

      Heddle reads `config/heddle.rb`, else `heddle.rb`, in the folder where the server is started. `--config FILE` or
      `HEDDLE_CONFIG` names another file; with `--config -`, Heddle reads no file. `heddle init` writes a first file, and
      `heddle init --from config/puma.rb` translates Puma's. The file is Ruby, and each option is a method:

      ```ruby
      # config/heddle.rb
      bind "0.0.0.0:3000", "unix:tmp/heddle.sock"
      stop_timeout environment == "production" ? 20 : 1
      body_limit "20m"
      ```

      A size is a number of bytes, or a String that ends in `k`, `m` or `g`. A path is relative to the folder where the server
      is started. `environment` without a value returns the environment's name. All mistakes are reported at once, each with
      its line, and the server does not start. The file is read before the application is loaded, so it can't use the
      application's code. It is read again at a reload. If it has a mistake then, the old configuration stays.

      ## The environment

      Besides its own variables, Heddle reads the variables that Rails applications are usually deployed with:

      | variable | what it sets |
      | - | - |
      | `PORT` | `port` |
      | `WEB_CONCURRENCY` | `workers`: a number, or `auto` |
      | `RAILS_MAX_THREADS` | `threads`, in mode thread. In mode fiber it sets no option of Heddle; it is only the size that the application gives its pool of database connections |
      | `RAILS_ENV`, `APP_ENV`, `RACK_ENV` | `environment`; Heddle uses the first that is set. Puma's order is `APP_ENV`, `RACK_ENV`, `RAILS_ENV` |
      | `PIDFILE` | `pidfile` |

      An unknown variable that begins with `HEDDLE_` is reported at the start, with the nearest known name.
    TEXT

    # @return [String] the page
    def self.text
      subjects = Options::SUBJECTS.map do |subject, options|
        "## #{subject}\n\n#{options.map { |option| section(option) }.join("\n")}"
      end
      [INTRODUCTION, *hooks, *subjects].join("\n")
    end

    def self.section(option)
      rows = Server::OptionPage.new(option).attributes.map { |name, value| "| #{name} | #{cell(option, name, value)} |" }
      ["### #{option.name}", "", "#{option.sentences}#{" #{option.details}" if option.details}", "",
       "| | |", "| - | - |", *rows].join("\n") << "\n"
    end
    private_class_method :section

    # Names are set as code, the words around them are not.
    def self.cell(option, name, value)
      return value if name == "default" || (name == "values" && !option.choices)
      return "`#{value}`" if name == "file"

      value.split(", ").map { |part| part.sub(/\A(\S+(?: [A-Z]+)?)(.*)\z/, '`\1`\2') }.join(", ")
    end
    private_class_method :cell

    def self.hooks
      return [] if Server::Hooks::NAMES.empty?

      rows = Server::Hooks::NAMES.map { |name, text| "| `#{name} { … }` | #{text} |" }
      ["## Hooks\n\nBlocks of the configuration file that Heddle calls at certain steps; each may be given several " \
       "times. A server with a single process runs `worker_boot` and `worker_stop` (with the number 0) and " \
       "`on_booted` itself.\n\n" \
       "| hook | when it runs |\n| - | - |\n#{rows.join("\n")}\n"]
    end
    private_class_method :hooks
  end
end
