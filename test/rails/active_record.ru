# frozen_string_literal: true

# Active Record without Rails, as under Sinatra.

require "active_record"

ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=5")

run(lambda do |_env|
  ActiveRecord::Base.transaction do
    ActiveRecord::Base.lease_connection.execute("SELECT pg_sleep(0.1)")
  end
  ActiveRecord::Base.connection_handler.clear_active_connections!
  [200, {}, [ActiveSupport::IsolatedExecutionState.isolation_level.to_s]]
end)
