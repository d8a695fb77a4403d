# frozen_string_literal: true

# Says how many queries of this application the database runs at once, with status 500 if these are too many; under
# /lease by a connection that the request keeps until its end. Under /hold a query lasts, and the file `holder` has the
# worker's process.

require "active_record"

ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=5&max_total=#{ENV.fetch("MAX_TOTAL")}" \
                                        "&application_name=limited&checkout_timeout=60")
RUNNING = "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.05) WHERE state = 'active' AND " \
          "application_name = 'limited'"

run lambda { |env|
  case env["PATH_INFO"]
  when "/lease" then running = ActiveRecord::Base.lease_connection.select_value(RUNNING)
  when "/query" then running = ActiveRecord::Base.with_connection { |connection| connection.select_value(RUNNING) }
  when "/hold"
    File.write("holder", Process.pid.to_s)
    ActiveRecord::Base.with_connection { |connection| connection.execute("SELECT pg_sleep(600)") }
  end
  [running.to_i > Integer(ENV.fetch("MAX_TOTAL")) ? 500 : 200, { "x-worker" => Process.pid.to_s }, [running.to_s]]
}
