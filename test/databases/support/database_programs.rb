# frozen_string_literal: true

require "json"
require "trials/support/trial"
require "support/private_mariadb"
require "support/private_postgresql"

# Runs programs of this folder against a private server, each in a process of its own: Active Record and Sequel keep
# their settings for the whole process.
module DatabasePrograms
  include Trial

  FOLDER = File.expand_path("..", __dir__)
  LIBRARIES = { "pool" => nil, "active_record" => "activerecord", "sequel" => "sequel" }.freeze
  DRIVERS = %w[pg trilogy mysql2].freeze

  # Defines a test for each library with each driver.
  # @yield [library, driver] in the test
  def self.each_access(test_class, promise, &body)
    LIBRARIES.each_key do |library|
      DRIVERS.each do |driver|
        name = "test_#{promise}_by_#{library}_with_#{driver}"
        test_class.define_method(name) { instance_exec(library, driver, &body) }
      end
    end
  end

  # @param server [String, nil] PostgreSQL's URL or MariaDB's socket; nil: of the servers that tests share
  # @return [Hash] what the program printed in its last line
  def database_program(name, library, driver, limit:, env: {}, server: nil)
    need_gem LIBRARIES[library] if LIBRARIES[library]
    need_gem driver
    program = "load(#{File.join(FOLDER, "#{name}.rb").inspect})"
    server ||= address(driver)
    output, status = unprotected_program(program, library, driver, server, limit.to_s, env:)

    assert_predicate status, :success?, output
    JSON.parse(output.lines.last)
  end

  private

  def address(driver)
    if driver == "pg"
      need_program("postgres") unless PrivatePostgresql.programs
      require "pg"
      PrivatePostgresql.shared.url
    else
      skip "needs the program mariadbd (Debian package mariadb-server-core): bin/setup --system" unless
        PrivateMariadb.program
      PrivateMariadb.shared.socket
    end
  end
end
