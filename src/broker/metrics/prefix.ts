/** What the name of every metric begins with. */
export const PREFIX = "queen_mesh_";
