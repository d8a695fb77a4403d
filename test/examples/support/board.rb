# frozen_string_literal: true

# What tests of examples/rails_postgresql share: one PostgreSQL a process, one database an environment.
module Board
  FOLDER = File.expand_path("../../../examples/rails_postgresql", __dir__)

  def need_board
    skip "needs the gems of examples/rails_postgresql: bin/setup" unless ServedExample.gems?("rails_postgresql")
    need_program("postgres") unless PrivatePostgresql.programs
    require "pg"
  end

  # @return [ServedExample] in the environment of that name, shared by the tests of this process
  def board(name) = ServedExample.shared("rails_postgresql", bundled: true, environment: environment(name))

  # @return [Hash] the process environment, with a database that is ready
  def environment(name)
    { "RAILS_ENV" => name, "SECRET_KEY_BASE" => "0" * 64, "RAILS_LOG_LEVEL" => "warn",
      "HEDDLE_WORKERS" => "1", "RAILS_MAX_THREADS" => nil, "PORT" => nil, "HEDDLE_ACCESS_LOG" => "off",
      "DATABASE_URL" => Board.database(name) }
  end

  class << self
    # @return [String] the URL of a database with the application's tables
    def database(name)
      (@databases ||= {})[name] ||= PrivatePostgresql.shared.url("board_#{name}").tap { |url| prepare(name, url) }
    end

    private

    def prepare(name, url)
      PrivatePostgresql.shared.connect.tap { |pg| pg.exec("CREATE DATABASE board_#{name}") }.close
      environment = ServedExample.bundle("rails_postgresql")
                                 .merge("RAILS_ENV" => name, "SECRET_KEY_BASE" => "0" * 64, "DATABASE_URL" => url,
                                        "DISABLE_DATABASE_ENVIRONMENT_CHECK" => "1")
      output, status = Open3.capture2e(environment, RbConfig.ruby, "bin/rails", "db:schema:load", chdir: FOLDER)
      raise output unless status.success?
    end
  end
end
