# frozen_string_literal: true

require "active_record"

ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
ActiveRecord::Base.establish_connection("#{ENV.fetch("MATRIX_POSTGRESQL")}&pool=#{CLIENTS}")
meeting = Meeting.new
got = clients do |number|
  ActiveRecord::Base.transaction do
    meeting.wait
    ActiveRecord::Base.connection.select_rows("SELECT pg_backend_pid(), #{number}").first
  end
end
proves("8 transactions at once, a connection each", got.map(&:first).uniq.size == CLIENTS)
proves("each task has its own rows", got.map(&:last) == [*0...CLIENTS])
