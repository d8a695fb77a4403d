# frozen_string_literal: true

require_relative "../rails_app"
require "active_storage/engine"

rails_application(schema: migration_of("activestorage",
                                       "db/migrate/20170806125915_create_active_storage_tables.rb")) do |config|
  config.active_storage.service = :disk
  config.active_storage.service_configurations = { disk: { service: "Disk", root: File.join(config.root, "files") } }
  config.active_job.queue_adapter = :async
end

# Has files.
class Letter < ActiveRecord::Base
  has_one_attached :text
end
ActiveRecord::Schema.define { create_table(:letters) }

got = clients do |number|
  letter = Letter.create!
  letter.text.attach(io: StringIO.new(number.to_s * 100_000), filename: "#{number}.txt", content_type: "text/plain")
  letter.reload.text.download
end
proves("8 tasks attach files and read them back, each its own", got == (0...CLIENTS).map { |n| n.to_s * 100_000 })
100.times { ActiveStorage::Blob.all.all?(&:analyzed?) ? break : sleep(0.05) }
proves("files are analyzed by jobs in threads", ActiveStorage::Blob.all.all?(&:analyzed?))
