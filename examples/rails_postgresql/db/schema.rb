# frozen_string_literal: true

ActiveRecord::Schema[8.0].define(version: 1) do
  create_table :notes, force: :cascade do |t|
    t.string :text, null: false
    t.timestamps
  end
end

# Solid Queue's tables, in the same database. `bin/rails solid_queue:install` would write them to db/queue_schema.rb.
load File.join(Gem.loaded_specs.fetch("solid_queue").full_gem_path,
               "lib/generators/solid_queue/install/templates/db/queue_schema.rb")
